/* SPDX-License-Identifier: Apache-2.0
 *
 * Where Azure's instance metadata service is, and what every request to it carries.
 */
#ifndef BELAY_CLOUD_AZURE_IMDS_H
#define BELAY_CLOUD_AZURE_IMDS_H

#define AZURE_IMDS_URL "http://169.254.169.254"
/* refused without: a redirected browser does not send it */
#define AZURE_IMDS_HEADER "Metadata: true"
#define AZURE_IMDS_REPLY_MAX (256 * 1024)

#endif
