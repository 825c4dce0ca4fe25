# SPDX-License-Identifier: Apache-2.0
"""What the cluster's objects say, as text, documents and an HTML page.  Pure: no API, no clock."""
