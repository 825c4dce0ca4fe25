# SPDX-License-Identifier: Apache-2.0
"""How a device is given back, as a plan; nothing is done here."""
