"""Results along output times, as tables to take elsewhere."""

import abc
import csv
import pathlib
from typing import Any

import numpy as np

from .._programs.batch import AbstractBatch


class AbstractTable(AbstractBatch):
    """A result with a row for each output time."""

    @abc.abstractmethod
    def columns(self) -> dict[str, np.ndarray]:
        """All there is to read by name, a column each; the first one is `t`."""

    def to_csv(self, path: Any) -> pathlib.Path:
        """Writes the table of its columns as CSV, every number with all its digits."""
        columns, path = self.columns(), pathlib.Path(path)
        with open(path, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(columns)
            out.writerows(zip(*(x.tolist() for x in columns.values())))
        return path

    def to_parquet(self, path: Any) -> pathlib.Path:
        """Writes the table of its columns as Parquet."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise ImportError('a Parquet file needs pyarrow: pip install "mbsjax[campaign]"') from error
        pyarrow.parquet.write_table(pyarrow.table(self.columns()), path)
        return pathlib.Path(path)

    def to_pandas(self) -> Any:
        """The table of its columns as a `pandas.DataFrame`, with the times for its index."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError('a data frame needs pandas: pip install "mbsjax[tables]"') from error
        return pandas.DataFrame(self.columns()).set_index("t")

    def to_xarray(self) -> Any:
        """The table of its columns as an `xarray.Dataset` over the dimension `t`."""
        try:
            import xarray
        except ImportError as error:
            raise ImportError('a dataset needs xarray: pip install "mbsjax[tables]"') from error
        columns = self.columns()
        times = columns.pop("t")
        return xarray.Dataset({name: ("t", x) for name, x in columns.items()}, coords={"t": times})
