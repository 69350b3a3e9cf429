#!/bin/bash
hostname
echo done
