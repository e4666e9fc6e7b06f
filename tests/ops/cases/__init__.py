# SPDX-License-Identifier: Apache-2.0
"""Cases of operators, one file per family of operators (see common.Own)."""
