# SPDX-License-Identifier: Apache-2.0
"""When a watcher traces, and which claims it keeps."""
