"""The two files of `clarinet train`, opened before it is known in which size their images are wanted."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from clarinet.files.looks import looks_of, looks_of_pair
from clarinet.recipes.choices import Looks
from clarinet.recipes.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

    from clarinet.data.folders import FolderFiles
    from clarinet.data.training_data import DomainData


def say(sentences: Sequence[str]) -> None:
    """Say on standard error what is to be known of the files."""
    for sentence in sentences:
        print(f"clarinet: {sentence}", file=sys.stderr)


def add_skip_option(parser: argparse.ArgumentParser) -> None:
    """Describe `--skip-bad` to the parser."""
    parser.add_argument(
        "--skip-bad", action="store_true", help="leave out image files that cannot be read, and name them"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A file of the command: an npz, of which all is read, or a folder, whose images wait for their size."""

    path: Path
    arrays: "DomainData | None"
    files: "FolderFiles | None" = None
    class_names: Sequence[str] = ()  # of an npz that has them

    @classmethod
    def at(cls, path: Path, *, skip_bad: bool = False) -> "Opened":
        """Open an npz or a folder, and say what is to be known of it; raises DataError where it cannot be."""
        from clarinet.data.folders import files_of
        from clarinet.data.npz import load_class_names, read_npz

        if not path.is_dir():
            arrays, told = read_npz(path)
            say(told)
            return cls(path, cast("DomainData", arrays), class_names=load_class_names(path, arrays))
        found = files_of(path, skip_bad=skip_bad)
        say(found.said())
        return cls(path, None, found)

    @property
    def looks(self) -> Looks:
        """What its images look like; raises DataError where there are none."""
        if self.files is not None:
            return self.files.looks
        assert self.arrays is not None  # either or
        if "x_train" not in self.arrays:
            raise DataError(f"{self.path} lacks x_train")
        images = self.arrays["x_train"]
        if not len(images):
            raise DataError(f"x_train of {self.path} is empty")
        return looks_of(cast("Tensor", images))

    def read(self, side: int) -> tuple["DomainData", list[str]]:
        """Its arrays, those of a folder as squares of so many pixels, and the names of the classes."""
        from clarinet.data.folders import load_files

        if self.files is not None:
            return load_files(self.files, side=side)
        assert self.arrays is not None  # either or
        return self.arrays, list(self.class_names)


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
        return cls(
            Opened.at(source, skip_bad=arguments.skip_bad), Opened.at(target, skip_bad=arguments.skip_bad)
        )

    @property
    def looks(self) -> Looks:
        """What the images look like: photographs in one file make it a pair of photographs."""
        return looks_of_pair(self.source.looks, self.target.looks)
