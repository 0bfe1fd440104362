"""The two files of `clarinet train`, opened before it is known in which size their images are wanted."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from clarinet.files.looks import looks_of, looks_of_pair
from clarinet.recipes.choices import Looks
from clarinet.recipes.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

    from clarinet.data.training_data import DomainData


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A file of the command: an npz, of which all is read, or a folder, whose images wait for their size."""

    path: Path
    arrays: "DomainData | None"

    @classmethod
    def at(cls, path: Path) -> "Opened":
        """Open an npz or a folder; raises DataError where it cannot be read."""
        from clarinet.data.npz import load_npz

        return cls(path, None if path.is_dir() else cast("DomainData", load_npz(path)))

    @property
    def looks(self) -> Looks:
        """What its images look like; raises DataError where there are none."""
        from clarinet.data.folders import looks_of_folder

        if self.arrays is None:
            return looks_of_folder(self.path)
        if "x_train" not in self.arrays:
            raise DataError(f"{self.path} lacks x_train")
        images = self.arrays["x_train"]
        if not len(images):
            raise DataError(f"x_train of {self.path} is empty")
        return looks_of(cast("Tensor", images))

    def read(self, side: int) -> tuple["DomainData", list[str]]:
        """Its arrays, those of a folder as squares of so many pixels, and the names of a folder's classes."""
        from clarinet.data.folders import load_folder

        return load_folder(self.path, side=side) if self.arrays is None else (self.arrays, [])


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Both files of the command."""

    source: Opened
    target: Opened

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> "Pair":
        """Open both.

        Raises:
            DataError: one cannot be read, or both are the same.
        """
        source, target = arguments.source, arguments.target
        if source.exists() and target.exists() and source.samefile(target):
            raise DataError(
                f"--source and --target are both {source}; the target must be other images than the source, "
                "or there is nothing to adapt to"
            )
        return cls(Opened.at(source), Opened.at(target))

    @property
    def looks(self) -> Looks:
        """What the images look like: photographs in one file make it a pair of photographs."""
        return looks_of_pair(self.source.looks, self.target.looks)
