"""A process that places points by UMAP: asked once, dead afterwards. `worker/umapping.py` is the other side.

It is the only one that loads the package: that takes seconds, and its compiler hundreds of megabytes.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.apart import asked, bound, tell

ADDRESS_SPACE = 8 * 2**30
NEIGHBOURS = 15
SEED = 0  # the same for all, so that equal maps give equal places


def placed(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """(P, 2) places of points (P, C); equal points give equal bytes on one machine.

    It starts from the two principal components, so that both maps lie alike.
    """
    from umap import UMAP  # noqa: PLC0415 - an optional package, which takes seconds to load

    start = points[:, :2] - points[:, :2].mean(0)
    start = start / max(float(np.abs(start).max()), 1e-9) * 10  # as its own starts are scaled
    neighbours = min(NEIGHBOURS, len(points) - 1)
    found = UMAP(n_neighbors=neighbours, init=start, random_state=SEED, n_jobs=1).fit_transform(points)
    return np.ascontiguousarray(found, np.float32)


def main() -> None:
    """Read points, write their places."""
    request: dict[str, Any] = asked()
    # What it compiles is kept beside its source by default, where it may not write.
    os.environ["NUMBA_CACHE_DIR"] = request["folder"]
    bound(address_space=ADDRESS_SPACE, cpu_s=request["cpu_s"])
    found = placed(np.load(request["given"], allow_pickle=False))
    np.save(Path(request["found"]), found)
    tell(result={"points": len(found)})


if __name__ == "__main__":
    main()
