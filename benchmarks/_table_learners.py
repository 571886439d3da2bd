"""Learners of tables, each with a search of the same time: seconds of the processor, on one thread.

A peer goes through settings at random, its defaults first, until its time is over; the setting with the
least mean error over five folds (of more than 2,000 rows: on a fifth of them) is fitted on all rows.
Boosting stops early on the rows that are left out, and its last fit has as many rounds as were best there.
xRFM stops early too, and its last fit keeps a tenth of the rows for that. None of them sees a row of the
test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

_ROUNDS, _PATIENCE = 3000, 50  # of boosting, at most; and without progress
_FOLDS_UP_TO = 2000  # rows that are cut into five folds
_MOST_CATEGORIES = 50  # of a column, each with a column of its own, where numbers are needed
_KERNELS_UP_TO = 8000  # rows of which scikit-learn keeps a matrix
_WIDTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # times 1 / columns


@dataclass(frozen=True)
class Task:
    """What a learner is told: whether there are classes, how many, and the seed."""

    is_class: bool
    classes: int
    seed: int


class Numbers:
    """Standardised columns, those of categories one for each."""

    def __init__(self, X: pd.DataFrame) -> None:
        texts = [name for name in X if X[name].dtype == object]
        numbers = [name for name in X if X[name].dtype != object]
        self.parts = [
            (
                numbers,
                make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()),
            ),
            (texts, OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_MOST_CATEGORIES)),
        ]
        for names, step in self.parts:
            if names:
                step.fit(self._plain(X, names))

    @staticmethod
    def _plain(X: pd.DataFrame, names: list[str]) -> np.ndarray:
        part = X[names]
        return part.fillna("missing").to_numpy() if part.dtypes.eq(object).any() else part.to_numpy()

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        found = [step.transform(self._plain(X, names)) for names, step in self.parts if names]
        return np.hstack([part.toarray() if hasattr(part, "toarray") else part for part in found])


class Categories:
    """Columns of categories as pandas has them, those of the rows that were learned from."""

    def __init__(self, X: pd.DataFrame) -> None:
        self.known = {name: sorted(X[name].dropna().unique()) for name in X if X[name].dtype == object}

    def __call__(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(
            **{name: pd.Categorical(X[name], categories=known) for name, known in self.known.items()}
        )


class Words(Categories):
    """Columns of categories as texts, also where one is missing."""

    def __call__(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(**{name: X[name].fillna("missing").astype(str) for name in self.known})


# --- peers: settings at random, and a fit -----------------------------------------------------------------


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


class LightGBM:
    """Boosting of trees that grow by leaves."""

    columns = Categories

    def settings(self, task: Task, d: int) -> Iterator[dict[str, Any]]:
        rng = np.random.default_rng(task.seed)
        yield {}
        while True:
            yield {
                "learning_rate": _log(rng, 0.01, 0.2),
                "num_leaves": int(_log(rng, 4, 200)),
                "min_child_samples": int(_log(rng, 2, 100)),
                "colsample_bytree": rng.uniform(0.4, 1.0),
                "subsample": rng.uniform(0.5, 1.0),
                "subsample_freq": 1,
                "reg_lambda": _log(rng, 1e-3, 10),
                "cat_smooth": _log(rng, 1, 100),
            }

    def fit(self, task: Task, setting: dict, X: Any, y: Any, new: Any, rounds: int | None) -> tuple[Any, int]:
        import lightgbm

        kind = lightgbm.LGBMClassifier if task.is_class else lightgbm.LGBMRegressor
        model = kind(n_estimators=rounds or _ROUNDS, n_jobs=1, random_state=task.seed, verbose=-1, **setting)
        if new is None:
            return model.fit(X, y), 0
        model.fit(X, y, eval_set=[new], callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)])
        return model, model.best_iteration_


class XGBoost:
    """Boosting of trees that grow by levels."""

    columns = Categories

    def settings(self, task: Task, d: int) -> Iterator[dict[str, Any]]:
        rng = np.random.default_rng(task.seed)
        yield {}
        while True:
            yield {
                "learning_rate": _log(rng, 0.01, 0.3),
                "max_depth": int(rng.integers(2, 11)),
                "min_child_weight": _log(rng, 0.5, 50),
                "colsample_bytree": rng.uniform(0.4, 1.0),
                "subsample": rng.uniform(0.5, 1.0),
                "reg_lambda": _log(rng, 1e-3, 10),
            }

    def fit(self, task: Task, setting: dict, X: Any, y: Any, new: Any, rounds: int | None) -> tuple[Any, int]:
        import xgboost

        kind = xgboost.XGBClassifier if task.is_class else xgboost.XGBRegressor
        model = kind(
            n_estimators=rounds or _ROUNDS, n_jobs=1, random_state=task.seed, enable_categorical=True,
            early_stopping_rounds=None if new is None else _PATIENCE, **setting,
        )  # fmt: skip
        if new is None:
            return model.fit(X, y), 0
        model.fit(X, y, eval_set=[new], verbose=False)
        return model, model.best_iteration + 1


class CatBoost:
    """Boosting of symmetric trees, with categories by the mean target of the rows before."""

    columns = Words

    def settings(self, task: Task, d: int) -> Iterator[dict[str, Any]]:
        rng = np.random.default_rng(task.seed)
        yield {}
        while True:
            yield {
                "learning_rate": _log(rng, 0.02, 0.3),
                "depth": int(rng.integers(3, 9)),
                "l2_leaf_reg": _log(rng, 0.5, 30),
                "random_strength": _log(rng, 0.1, 10),
                "bagging_temperature": rng.uniform(0.0, 1.0),
            }

    def fit(self, task: Task, setting: dict, X: Any, y: Any, new: Any, rounds: int | None) -> tuple[Any, int]:
        import catboost

        kind = catboost.CatBoostClassifier if task.is_class else catboost.CatBoostRegressor
        words = [name for name in X if X[name].dtype == object or str(X[name].dtype).startswith("str")]
        model = kind(
            iterations=rounds or _ROUNDS // 3, thread_count=1, random_seed=task.seed, verbose=False,
            allow_writing_files=False, cat_features=words, **setting,
        )  # fmt: skip
        if new is None:
            return model.fit(X, y), 0
        model.fit(X, y, eval_set=new, early_stopping_rounds=_PATIENCE)
        return model, model.get_best_iteration() + 1


class XRFM:
    """A kernel machine that learns features by the average outer product of its gradients."""

    columns = Numbers

    def settings(self, task: Task, d: int) -> Iterator[dict[str, Any]]:
        rng = np.random.default_rng(task.seed)
        yield {"model": {"kernel": "l2", "bandwidth": 10.0, "exponent": 1.0, "diag": False}, "reg": 1e-3}
        while True:
            yield {
                "model": {
                    "kernel": str(rng.choice(["l2", "l1"])),
                    "bandwidth": _log(rng, 1.0, 200.0),
                    "exponent": rng.uniform(0.7, 1.4),
                    "diag": bool(rng.integers(2)),
                    "bandwidth_mode": str(rng.choice(["constant", "adaptive"])),
                },
                "reg": _log(rng, 1e-6, 1.0),
            }

    def fit(self, task: Task, setting: dict, X: Any, y: Any, new: Any, rounds: int | None) -> tuple[Any, int]:
        import torch
        from xrfm import xRFM

        torch.set_num_threads(1)
        if new is None:  # The last fit keeps a tenth to stop by.
            order = np.random.default_rng(task.seed).permutation(len(y))
            kept, rest = order[: len(y) // 10], order[len(y) // 10 :]
            X, y, new = X[rest], y[rest], (X[kept], y[kept])
        fit = {"reg": setting["reg"], "iters": 5, "verbose": False, "early_stop_rfm": True}
        model = xRFM(
            {"model": setting["model"], "fit": fit},
            device=torch.device("cpu"),
            tuning_metric="accuracy" if task.is_class else "mse",
            random_state=task.seed,
            n_threads=1,
            verbose=False,
        )
        centre, spread = (0.0, 1.0) if task.is_class else (y.mean(), y.std())
        kind = torch.long if task.is_class else torch.float32
        targets = [torch.tensor((part - centre) / spread, dtype=kind) for part in (y, new[1])]
        if task.is_class:
            targets = [target.to(torch.long) for target in targets]
        model.fit(X.astype(np.float32), targets[0], new[0].astype(np.float32), targets[1])
        return _Shifted(model, centre, spread, task.is_class), 0


@dataclass(frozen=True)
class _Shifted:
    """Predictions of xRFM in units of the target."""

    model: Any
    centre: float
    spread: float
    is_class: bool

    def predict(self, X: np.ndarray) -> np.ndarray:
        found = np.asarray(self.model.predict(X.astype(np.float32))).reshape(len(X))
        return found.astype(int) if self.is_class else self.centre + self.spread * found


class Grid:
    """scikit-learn's SVC, or its kernel ridge, from a grid."""

    columns = Numbers

    def settings(self, task: Task, d: int) -> Iterator[dict[str, Any]]:
        widths = np.array(_WIDTHS) / d
        if task.is_class:
            grid = [{"C": C, "gamma": g} for C, g in product(10.0 ** np.arange(-1, 3.1, 0.5), widths)]
            yield {}
        else:
            grid = [
                {"kernel": kernel, "alpha": alpha, "gamma": g}
                for kernel, alpha, g in product(("rbf", "laplacian"), 10.0 ** np.arange(-5, 1.1), widths)
            ]
            yield {"kernel": "rbf", "alpha": 0.1, "gamma": 1.0 / d}
        for number in np.random.default_rng(task.seed).permutation(len(grid)):
            yield grid[number]

    def fit(self, task: Task, setting: dict, X: Any, y: Any, new: Any, rounds: int | None) -> tuple[Any, int]:
        from sklearn.kernel_ridge import KernelRidge
        from sklearn.svm import SVC

        if task.is_class:
            return SVC(**setting).fit(X, y), 0
        if len(y) > _KERNELS_UP_TO:
            raise MemoryError(f"a matrix of {len(y):,} rows")
        return _Shifted(KernelRidge(**setting).fit(X, y - y.mean()), y.mean(), 1.0, False), 0


PEERS = {
    "LightGBM": LightGBM(),
    "XGBoost": XGBoost(),
    "CatBoost": CatBoost(),
    "xRFM": XRFM(),
    "scikit-learn": Grid(),
}


# --- the searches ------------------------------------------------------------------------------------------


def loss(task: Task, told: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of each row: whether the class is wrong, or the square of the error."""
    told = np.asarray(told).reshape(len(y))
    return np.asarray((told != y) if task.is_class else (told - y) ** 2, dtype=np.float64)


def _splits(y: np.ndarray, task: Task) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = StratifiedKFold if task.is_class and np.bincount(y).min() >= 5 else KFold
    folds = list(kind(5, shuffle=True, random_state=task.seed).split(y, y))
    return folds if len(y) <= _FOLDS_UP_TO else folds[:1]


def searched(peer: Any, X: pd.DataFrame, y: np.ndarray, task: Task, seconds: float) -> tuple[Any, Any, int]:
    """The best setting that there was time for, on all rows; what makes its columns; how many were tried."""
    end, columns, tried = process_time() + seconds, peer.columns(X), 0
    Z = columns(X)
    best, least, rounds = {}, np.inf, None
    splits = _splits(y, task)
    for setting in peer.settings(task, Z.shape[1]):
        errors, counts = [], []
        for train, test in splits:
            if tried and process_time() > end:
                break
            new = (_rows(Z, test), y[test])
            model, best_round = peer.fit(task, setting, _rows(Z, train), y[train], new, None)
            errors.append(loss(task, model.predict(new[0]), y[test]))
            counts.append(best_round)
        if len(errors) < len(splits):
            break
        tried += 1
        if (mean := np.concatenate(errors).mean()) < least:
            best, least, rounds = setting, mean, max(int(np.mean(counts)), 1)
        if process_time() > end:
            break
    return peer.fit(task, best, Z, y, None, rounds)[0], columns, tried


def _rows(Z: Any, which: np.ndarray) -> Any:
    return Z.iloc[which] if isinstance(Z, pd.DataFrame) else Z[which]


def of_mercer(X: pd.DataFrame, y: np.ndarray, task: Task, seconds: float) -> tuple[Any, Any, int]:
    """What ``mercer train`` searches and fits, without the estimate of its error, which no peer makes."""
    from mercer.tables import TableModel
    from mercer.tables.learners import learner

    name = "classification" if task.is_class else "regression"
    model = TableModel(learner("auto", name, kernel="auto", max_time=seconds, seed=task.seed)).fit(X, y)
    return model, lambda frame: frame, len(model.estimator_.trials_)
