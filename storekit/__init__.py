"""For authors of stores: the contract, the model, real servers, and faults. It is not part of the wheel."""
