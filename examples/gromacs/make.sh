#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh [STEPS]: makes md.tpr, a small box of water, in the current directory.
set -eu
steps=${1:-20000}
cat >md.mdp <<END
integrator = md
nsteps = $steps
dt = 0.002
nstlist = 10
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = 300
constraints = h-bonds
gen-vel = yes
gen-seed = 1
ld-seed = 1
nstenergy = 100
nstlog = 1000
END
printf '%s\n' '#include "oplsaa.ff/forcefield.itp"' '#include "oplsaa.ff/spc.itp"' '[ system ]' water '[ molecules ]' >md.top
gmx -quiet -nobackup solvate -cs spc216.gro -box 2 2 2 -o conf.gro -p md.top
gmx -quiet -nobackup grompp -f md.mdp -c conf.gro -p md.top -o md.tpr -po md.out.mdp -maxwarn 2
