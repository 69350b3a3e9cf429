/* SPDX-License-Identifier: Apache-2.0
 *
 * The address of Azure's instance metadata service, and the header of every request to it.
 */
#ifndef BELAY_CLOUD_AZURE_IMDS_H
#define BELAY_CLOUD_AZURE_IMDS_H

#define AZURE_IMDS_URL "http://169.254.169.254"
/* required; a redirected browser does not send it */
#define AZURE_IMDS_HEADER "Metadata: true"
#define AZURE_IMDS_REPLY_MAX (256 * 1024)

#endif
