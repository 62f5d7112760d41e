"""The contract itself: a store's author inherits all of it."""

from collections import Counter

from storekit.contract import StoreContract
from storekit.contract.stage import Staged


def test_no_claim_hides_another_of_the_same_name() -> None:
    parts = [part for part in StoreContract.__mro__ if issubclass(part, Staged) and part is not StoreContract]
    names = Counter(name for part in parts for name in vars(part) if not name.startswith("_"))
    assert [name for name, count in names.items() if count > 1] == []
