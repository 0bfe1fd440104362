"""Every mapped class: whoever imports this has the whole of `Base.metadata`."""

import app.accounts.models
import app.accounts.organisation.models
import app.annotation.models
import app.campaigns.models
import app.datasets.models
import app.disk.models
import app.evaluations.models
import app.journal.models
import app.labels.models
import app.members.models
import app.mistakes.models
import app.notices.models
import app.quality.models
import app.registry.models
import app.registry.prediction_models
import app.request_keys
import app.runs.models  # noqa: F401  (each import fills it)
