"""Moving in: schedules of other schedulers as plans for rota, with a proof. Foreign pickles are never read here."""
