"""For every test: a fault of Seawall's own is a traceback, not a line under "Could not see".

``--hypothesis-profile=thorough`` (`make thorough`) draws as many examples as a night has room for.
"""

import gc
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from seawall.proc import capabilities
from seawall.readings import own_fault

own_fault.RAISES = True
# Whatever PYTHONDONTWRITEBYTECODE says: to rewrite the assertions of all tests takes half a minute
# of processor in each run, and verbs that are started would compile their sources.
sys.dont_write_bytecode = False
# Derived from what is in force: with CI set hypothesis draws the same examples in every run.
settings.register_profile("quick", settings(), deadline=None, max_examples=40)
settings.register_profile("thorough", settings(), deadline=None, max_examples=500)
settings.load_profile("quick")


def pytest_collection_finish() -> None:
    """Some 9,000 tests are a million objects that stay: each full collection, of which the tests
    that look for open descriptors ask one each, walked through them all for a quarter of a second.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _rights_stay() -> Iterator[None]:
    """A test that gives up rights of this process fails others that happen to come after it."""
    before = capabilities.held()
    yield
    assert capabilities.held() == before, "a test of this file gave up rights for all that follow"
