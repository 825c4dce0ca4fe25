# SPDX-License-Identifier: Apache-2.0
"""What people download, made from this tree: ``python -m release NAME...``, files in dist/."""
