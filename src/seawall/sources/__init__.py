# SPDX-License-Identifier: Apache-2.0
"""A host as moments that a verb looks at: the machine, a bundle, a black box."""
