"""Both sides of docs/migration.md: what a peer computes, and what mercer computes in its place.

Run with ``python -m benchmarks.migration``, or with the names of peers after it. Every case below returns two
arrays that should be equal; their largest difference, relative to the largest value, is a row of
benchmarks/results/migration.md, which the page shows. What a peer that is not installed had to say in an
earlier run stays there, with its version. In an environment of its own:

    pip install -e ".[test]" torch==2.13.0 libsvm-official grakel gpytorch
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

import mercer
from benchmarks._timing import Table, write
from mercer import Gaussian

#: peer: the module that it is imported as, and the distributions whose versions are stated
PEERS = {
    "scikit-learn": ("sklearn", ["scikit-learn"]),
    "LIBSVM": ("libsvm", ["libsvm-official"]),
    "GPyTorch": ("gpytorch", ["gpytorch", "torch"]),
    "GraKeL": ("grakel", ["grakel"]),
}


@dataclass(frozen=True)
class Case:
    """One line of the page: the two ways to write it, what is compared, and how near the two should be."""

    peer: str
    theirs: str
    ours: str
    compared: str
    tolerance: float
    run: Callable[[], tuple[object, object]]

    def difference(self) -> float:
        """The largest difference of the two sides, relative to the largest value."""
        theirs, ours = (np.asarray(values, dtype=float) for values in self.run())
        if theirs.shape != ours.shape:
            raise ValueError(f"{self.theirs}: shapes {theirs.shape} and {ours.shape}")
        return float(np.abs(theirs - ours).max() / np.abs(theirs).max())


CASES: list[Case] = []


def case(peer: str, theirs: str, ours: str, compared: str, tolerance: float = 1e-12) -> Callable:
    """Register a function that returns both sides."""

    def register(run: Callable[[], tuple[object, object]]) -> Callable[[], tuple[object, object]]:
        CASES.append(Case(peer, theirs, ours, compared, tolerance, run))
        return run

    return register


def installed(peer: str) -> bool:
    """Whether the peer can be imported."""
    return find_spec(PEERS[peer][0]) is not None


# The problems: a hundred points in four columns, two classes, three classes, targets.

FLOAT32 = 1e-5  # LIBSVM, and scikit-learn after it, keep kernel values in float32.
_rng = np.random.default_rng(0)
X, X_NEW = _rng.normal(size=(100, 4)), _rng.normal(size=(30, 4))
LABELS = np.where(X[:, 0] * X[:, 1] + 0.3 * _rng.normal(size=100) > 0, 1, -1)
THREE = np.digitize(X[:, 0] + 0.5 * _rng.normal(size=100), [-0.5, 0.5])
TARGETS = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * _rng.normal(size=100)
TARGETS -= TARGETS.mean()


# ---------------------------------------------------------------------------------------------- scikit-learn


def both_machines(name: str, targets: np.ndarray | None, **options: object) -> tuple[object, object]:
    """Values of f at new points: scikit-learn's machine of that name, and mercer's."""
    import sklearn.svm

    found = []
    for module in (sklearn.svm, mercer):
        model = getattr(module, name)(tol=1e-10, **options).fit(X, targets)
        values = getattr(model, "decision_function", model.predict)
        found.append(values(X_NEW))
    return found[0], found[1]


for _name, _targets, _options in (
    ("SVC", LABELS, {"C": 10.0, "gamma": 0.5}),
    ("SVC", THREE, {"C": 10.0, "class_weight": "balanced"}),
    ("SVC", LABELS, {"kernel": "poly", "coef0": 1.0}),
    ("NuSVC", LABELS, {"nu": 0.3}),
    ("SVR", TARGETS, {"C": 10.0, "epsilon": 0.05}),
    ("NuSVR", TARGETS, {"nu": 0.4, "C": 10.0}),
    ("OneClassSVM", None, {"nu": 0.1}),
):
    _written = ", ".join(f"{key}={value!r}" for key, value in _options.items())
    _classes = "f at new points, three classes" if _targets is THREE else "f at new points"
    case("scikit-learn", f"`svm.{_name}({_written})`", f"`{_name}({_written})`", _classes, FLOAT32)(
        lambda name=_name, targets=_targets, options=_options: both_machines(name, targets, **options)
    )


@case("scikit-learn", "`svm.SVC(C=10.0)`", "`SVC(C=10.0)`", "the dual's objective", 1e-9)
def _() -> tuple[object, object]:
    import sklearn.svm

    found = []
    for module in (sklearn.svm, mercer):
        model = module.SVC(C=10.0, gamma=0.5, tol=1e-10).fit(X, LABELS)
        signed = np.zeros(len(X))
        signed[model.support_] = model.dual_coef_[0]
        found.append(signed @ Gaussian(gamma=0.5)(X) @ signed / 2 - np.abs(signed).sum())
    return found[0], found[1]


@case(
    "scikit-learn",
    '`KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5)`',
    "`KernelRidge(alpha=0.1, gamma=0.5, fit_intercept=False)`",
    "predictions",
)
def _() -> tuple[object, object]:
    from sklearn.kernel_ridge import KernelRidge

    ours = mercer.KernelRidge(alpha=0.1, gamma=0.5, fit_intercept=False)
    theirs = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5)
    return theirs.fit(X, TARGETS).predict(X_NEW), ours.fit(X, TARGETS).predict(X_NEW)


@case(
    "scikit-learn",
    "`RidgeCV(alphas)`",
    '`KernelRidgeCV(alphas, kernel="linear")`',
    "predictions of the chosen penalty",
    1e-10,
)
def _() -> tuple[object, object]:
    from sklearn.linear_model import RidgeCV

    alphas = [0.1, 1.0, 10.0, 100.0]
    theirs, ours = RidgeCV(alphas), mercer.KernelRidgeCV(alphas, kernel="linear")
    return theirs.fit(X, TARGETS).predict(X_NEW), ours.fit(X, TARGETS).predict(X_NEW)


@case(
    "scikit-learn", '`KernelPCA(3, kernel="rbf")`', "`KernelPCA(3)`", "components, without their signs", 1e-9
)
def _() -> tuple[object, object]:
    from sklearn.decomposition import KernelPCA

    theirs = KernelPCA(3, kernel="rbf", gamma=0.5).fit(X).transform(X_NEW)
    return np.abs(theirs), np.abs(mercer.KernelPCA(3, gamma=0.5).fit(X).transform(X_NEW))


@case(
    "scikit-learn",
    "`Nystroem(n_components=20)`",
    "`LandmarkFeatures(landmarks=Z)`, Z the points that it drew",
    "inner products of features",
    1e-8,
)
def _() -> tuple[object, object]:
    from sklearn.kernel_approximation import Nystroem

    theirs = Nystroem(gamma=0.5, n_components=20, random_state=0).fit(X)
    points = X[theirs.component_indices_]
    ours = mercer.LandmarkFeatures(Gaussian(gamma=0.5), landmarks=points).fit(X)
    A, B = theirs.transform(X_NEW), ours.transform(X_NEW)
    return A @ A.T, B @ B.T


@case(
    "scikit-learn",
    "`GaussianProcessRegressor(RBF(1.5), alpha=0.1, optimizer=None)`",
    "`KernelRidge(alpha=0.1, kernel=Gaussian(sigma=1.5), fit_intercept=False)`",
    "the posterior's mean",
    1e-10,
)
def _() -> tuple[object, object]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    theirs = GaussianProcessRegressor(RBF(1.5), alpha=0.1, optimizer=None).fit(X, TARGETS)
    ours = mercer.KernelRidge(alpha=0.1, kernel=Gaussian(sigma=1.5), fit_intercept=False).fit(X, TARGETS)
    return theirs.predict(X_NEW), ours.predict(X_NEW)


def gaussian_process_kernels() -> list[tuple[str, object, mercer.Kernel]]:
    """Kernels of scikit-learn's Gaussian processes, and ours."""
    from sklearn.gaussian_process import kernels

    return [
        ("2 * RBF(1.5)", 2 * kernels.RBF(1.5), 2 * Gaussian(sigma=1.5)),
        ("Matern(1.5, nu=2.5)", kernels.Matern(1.5, nu=2.5), mercer.Matern(2.5, length_scale=1.5)),
        (
            "RationalQuadratic(1.5, alpha=0.7)",
            kernels.RationalQuadratic(1.5, alpha=0.7),
            mercer.RationalQuadratic(alpha=0.7, length_scale=1.5),
        ),
        ("DotProduct(2.0)", kernels.DotProduct(2.0), mercer.Linear() + 4.0),
    ]


def pairwise_kernels() -> list[tuple[str, object, mercer.Kernel]]:
    """Functions of sklearn.metrics.pairwise, and our kernels."""
    from sklearn.metrics import pairwise

    return [
        ("rbf_kernel(X, Y, 0.5)", lambda A, B: pairwise.rbf_kernel(A, B, 0.5), Gaussian(gamma=0.5)),
        (
            "laplacian_kernel(X, Y, 0.5)",
            lambda A, B: pairwise.laplacian_kernel(A, B, 0.5),
            mercer.Laplacian(0.5),
        ),
        (
            "polynomial_kernel(X, Y, 3, 0.5, 1.0)",
            lambda A, B: pairwise.polynomial_kernel(A, B, 3, 0.5, 1.0),
            mercer.Polynomial(3, c=1.0, gamma=0.5),
        ),
        (
            "sigmoid_kernel(X, Y, 0.5, 1.0)",
            lambda A, B: pairwise.sigmoid_kernel(A, B, 0.5, 1.0),
            mercer.Sigmoid(eta=0.5, nu=1.0),
        ),
        ("cosine_similarity(X, Y)", pairwise.cosine_similarity, mercer.Cosine()),
        (
            "chi2_kernel(X, Y, 0.5)",
            lambda A, B: pairwise.chi2_kernel(np.abs(A), np.abs(B), 0.5),
            mercer.ChiSquared(0.5) @ np.abs,
        ),
    ]


for _text, _theirs, _ours in gaussian_process_kernels() + pairwise_kernels():
    _shown = repr(_ours).replace(" @ absolute", "").replace(" @ <ufunc 'absolute'>", "")
    case("scikit-learn", f"`{_text}`", f"`{_shown}`", "kernel values")(
        lambda theirs=_theirs, ours=_ours: (theirs(X, X_NEW), ours(X, X_NEW))
    )


@case(
    "scikit-learn",
    "`ExpSineSquared(1.5, periodicity=2.0)`",
    "`Periodic(period=2.0, length_scale=1.5)`",
    "kernel values, one column",
)
def _() -> tuple[object, object]:
    from sklearn.gaussian_process.kernels import ExpSineSquared

    return ExpSineSquared(1.5, 2.0)(X[:, :1], X_NEW[:, :1]), mercer.Periodic(2.0, 1.5)(X[:, :1], X_NEW[:, :1])


@case(
    "scikit-learn",
    "`Perceptron(shuffle=False, max_iter=5, tol=None)`",
    "`Perceptron(max_iter=5)`",
    "weights and intercept, after five passes",
)
def _() -> tuple[object, object]:
    from sklearn.linear_model import Perceptron

    theirs = Perceptron(shuffle=False, max_iter=5, tol=None).fit(X, LABELS)
    ours = mercer.Perceptron()
    for _ in range(5):
        ours.partial_fit(X, LABELS, classes=[-1, 1])
    return [*theirs.coef_[0], *theirs.intercept_], [*np.ravel(ours.coef_), *np.ravel(ours.intercept_)]


# ---------------------------------------------------------------------------------------------------- LIBSVM


def libsvm_values(options: str, targets: np.ndarray, K: np.ndarray | None = None) -> np.ndarray:
    """f of LIBSVM at new points, positive for the class 1; with K, its matrices with the leading index."""
    from libsvm import svmutil

    known = X if K is None else np.column_stack([np.arange(1, len(X) + 1), K])
    new = X_NEW if K is None else np.column_stack([np.zeros(len(X_NEW)), X_NEW @ X.T])
    problem = svmutil.svm_problem(targets.astype(float).tolist(), known.tolist(), isKernel=K is not None)
    model = svmutil.svm_train(problem, f"{options} -e 1e-10 -q")
    values = svmutil.svm_predict([0.0] * len(new), new.tolist(), model, "-q")[2]
    sign = model.get_labels()[0] if options[3] in "01" else 1
    return sign * np.ravel(values)


def libsvm_case(options: str, ours: Any, targets: np.ndarray) -> None:
    """Register a line of options and the machine that does the same."""

    def run() -> tuple[object, object]:
        model = ours.set_params(tol=1e-10).fit(X, targets)
        return libsvm_values(options, targets), getattr(model, "decision_function", model.predict)(X_NEW)

    case("LIBSVM", f"`{options}`", f"`{ours!r}`", "f at new points", FLOAT32)(run)


for _line, _machine, _targets in (
    ("-s 0 -t 2 -c 10 -g 0.5", mercer.SVC(C=10.0, gamma=0.5), LABELS),
    ("-s 0 -t 2 -c 10", mercer.SVC(C=10.0, gamma="auto"), LABELS),
    ("-s 0 -t 2 -c 10 -w1 2", mercer.SVC(C=10.0, gamma="auto", class_weight={1: 2.0}), LABELS),
    ("-s 0 -t 0", mercer.SVC(kernel="linear"), LABELS),
    ("-s 0 -t 1 -d 3 -r 1", mercer.SVC(kernel="poly", gamma="auto", coef0=1.0), LABELS),
    ("-s 0 -t 3 -g 0.01", mercer.SVC(kernel="sigmoid", gamma=0.01), LABELS),
    ("-s 1 -t 2 -n 0.3", mercer.NuSVC(nu=0.3, gamma="auto"), LABELS),
    ("-s 2 -t 2 -n 0.1", mercer.OneClassSVM(nu=0.1, gamma="auto"), LABELS),
    ("-s 3 -t 2 -c 10 -p 0.05", mercer.SVR(C=10.0, epsilon=0.05, gamma="auto"), TARGETS),
    ("-s 4 -t 2 -c 10 -n 0.4", mercer.NuSVR(C=10.0, nu=0.4, gamma="auto"), TARGETS),
):
    libsvm_case(_line, _machine, _targets)


@case("LIBSVM", "`-s 0 -t 4`", '`SVC(kernel="precomputed")`', "f at new points", FLOAT32)
def _() -> tuple[object, object]:
    ours = mercer.SVC(kernel="precomputed", tol=1e-10).fit(X @ X.T, LABELS)
    return libsvm_values("-s 0 -t 4", LABELS, X @ X.T), ours.decision_function(X_NEW @ X.T)


@case("LIBSVM", "`svm-scale -l -1 -u 1`", "`MinMaxScaler((-1, 1))` of scikit-learn", "scaled columns")
def _() -> tuple[object, object]:
    from libsvm.commonutil import csr_find_scale_param, csr_scale
    from scipy.sparse import csr_matrix
    from sklearn.preprocessing import MinMaxScaler

    theirs = csr_scale(csr_matrix(X), csr_find_scale_param(csr_matrix(X), lower=-1, upper=1))
    return theirs.toarray(), MinMaxScaler((-1, 1)).fit_transform(X)


# --------------------------------------------------------------------------------------------------- GPyTorch


def torch_kernel(name: str, values: dict[str, object] | None = None, **options: object) -> object:
    """A kernel of GPyTorch in float64, with its parameters set."""
    import torch
    from gpytorch import kernels

    kernel = getattr(kernels, name)(**options).double()
    for parameter, value in (values or {}).items():
        setattr(kernel, parameter, torch.tensor(value, dtype=torch.float64))
    return kernel


def torch_values(kernel: object, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Its matrix."""
    import torch

    found: np.ndarray = kernel(torch.tensor(A), torch.tensor(B)).to_dense().detach().numpy()  # type: ignore[operator]
    return found


def gaussian_process(kernel: object, noise: float) -> object:
    """GPyTorch's exact process of mean zero on our points."""
    import gpytorch
    import torch

    class Process(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
            likelihood.noise = torch.tensor(noise, dtype=torch.float64)
            super().__init__(torch.tensor(X), torch.tensor(TARGETS), likelihood)
            self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), kernel

        def forward(self, x: object) -> object:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    return Process()


def posterior_mean(process: object) -> np.ndarray:
    """What it predicts at new points."""
    import torch

    found: np.ndarray = process.eval()(torch.tensor(X_NEW)).mean.detach().numpy()  # type: ignore[attr-defined]
    return found


def log_likelihood(process: object) -> object:
    """log p(y) of a process, a tensor."""
    import gpytorch

    mll = gpytorch.mlls.ExactMarginalLogLikelihood(process.likelihood, process)  # type: ignore[attr-defined]
    return mll(process(*process.train_inputs), process.train_targets) * len(X)  # type: ignore[attr-defined,operator]


def our_log_likelihood(kernel: mercer.Kernel, noise: float) -> float:
    """log p(y) by mercer's evidence, whose s² is at its best value."""
    from mercer.selection.evidence import evidence

    n = len(X)
    return -(evidence(kernel, X, TARGETS[:, None], noise)[0] + n / 2 * (np.log(2 * np.pi) + 1))


def torch_case(theirs: str, ours: mercer.Kernel, make: Callable[[], object], columns: int = 4) -> None:
    """Register a kernel of theirs and ours."""
    case("GPyTorch", f"`{theirs}`", f"`{ours!r}`", "kernel values")(
        lambda: (
            torch_values(make(), X[:, :columns], X_NEW[:, :columns]),
            ours(X[:, :columns], X_NEW[:, :columns]),
        )
    )


torch_case(
    "ScaleKernel(RBFKernel(ard_num_dims=4))",
    2 * Gaussian(sigma=[0.5, 1.0, 2.0, 4.0]),
    lambda: torch_kernel(
        "ScaleKernel",
        {"outputscale": 2.0},
        base_kernel=torch_kernel("RBFKernel", {"lengthscale": [[0.5, 1.0, 2.0, 4.0]]}, ard_num_dims=4),
    ),
)
torch_case(
    "MaternKernel(nu=1.5)",
    mercer.Matern(1.5, length_scale=1.2),
    lambda: torch_kernel("MaternKernel", {"lengthscale": 1.2}, nu=1.5),
)
torch_case(
    "RQKernel()",
    mercer.RationalQuadratic(alpha=0.7, length_scale=1.2),
    lambda: torch_kernel("RQKernel", {"lengthscale": 1.2, "alpha": 0.7}),
)
torch_case(
    "PeriodicKernel(), lengthscale 2.25",
    mercer.Periodic(period=2.0, length_scale=1.5),
    lambda: torch_kernel("PeriodicKernel", {"period_length": 2.0, "lengthscale": 2.25}),
)
torch_case("LinearKernel()", 2 * mercer.Linear(), lambda: torch_kernel("LinearKernel", {"variance": 2.0}))
torch_case(
    "PolynomialKernel(power=3)",
    mercer.Polynomial(3, c=1.5),
    lambda: torch_kernel("PolynomialKernel", {"offset": 1.5}, power=3),
)
torch_case(
    "PiecewisePolynomialKernel(q=1)",
    mercer.Wendland(radius=3.0, smoothness=1, dim=4),
    lambda: torch_kernel("PiecewisePolynomialKernel", {"lengthscale": 3.0}, q=1),
)
torch_case(
    "RBFKernel(active_dims=[0, 1])",
    Gaussian(sigma=1.2).on(0, 1),
    lambda: torch_kernel("RBFKernel", {"lengthscale": 1.2}, active_dims=[0, 1]),
)


@case("GPyTorch", "`k1 + k2 * k3`", "`k1 + k2 * k3`", "kernel values")
def _() -> tuple[object, object]:
    theirs = (
        torch_kernel("RBFKernel", {"lengthscale": 1.2}),
        torch_kernel("LinearKernel", {"variance": 1.0}),
        torch_kernel("MaternKernel", {"lengthscale": 0.8}, nu=2.5),
    )
    ours = Gaussian(sigma=1.2) + mercer.Linear() * mercer.Matern(2.5, length_scale=0.8)
    return torch_values(theirs[0] + theirs[1] * theirs[2], X, X_NEW), ours(X, X_NEW)  # type: ignore[operator]


@case(
    "GPyTorch",
    "`ExactGP`, its mean",
    "`KernelRidge(alpha=noise, kernel=k, fit_intercept=False)`",
    "predictions",
    1e-10,
)
def _() -> tuple[object, object]:
    theirs = posterior_mean(gaussian_process(torch_kernel("RBFKernel", {"lengthscale": 1.5}), 0.1))
    ours = mercer.KernelRidge(alpha=0.1, kernel=Gaussian(sigma=1.5), fit_intercept=False).fit(X, TARGETS)
    return theirs, ours.predict(X_NEW)


@case(
    "GPyTorch",
    "`InducingPointKernel`, with `sgpr_diagonal_correction(False)`",
    "`KernelRidge(…, landmarks=Z)`",
    "predictions",
    1e-8,
)
def _() -> tuple[object, object]:
    import gpytorch
    import torch

    kernel = torch_kernel("RBFKernel", {"lengthscale": 1.5})
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    kernel = gpytorch.kernels.InducingPointKernel(kernel, torch.tensor(X[:20]), likelihood)
    with gpytorch.settings.sgpr_diagonal_correction(False):
        theirs = posterior_mean(gaussian_process(kernel, 0.1))
    ours = mercer.KernelRidge(alpha=0.1, kernel=Gaussian(sigma=1.5), fit_intercept=False, landmarks=X[:20])
    return theirs, ours.fit(X, TARGETS).predict(X_NEW)


@case(
    "GPyTorch",
    "`ExactMarginalLogLikelihood`",
    "the evidence that `AutoKernelRegressor` learns by",
    "log p(y), at the same parameters",
    1e-10,
)
def _() -> tuple[object, object]:
    kernel, noise = Gaussian(sigma=1.5), 0.1
    scale = float(TARGETS @ np.linalg.solve(kernel(X) + noise * np.eye(len(X)), TARGETS)) / len(X)
    base = torch_kernel("RBFKernel", {"lengthscale": 1.5})
    process = gaussian_process(
        torch_kernel("ScaleKernel", {"outputscale": scale}, base_kernel=base), noise * scale
    )
    return log_likelihood(process).item(), our_log_likelihood(kernel, noise)  # type: ignore[attr-defined]


def learning() -> Table:
    """log p(y) where the parameters are learned: by Adam, as GPyTorch's guide does it, and by mercer."""
    import torch

    from mercer.selection.evidence import learn

    table = Table("GPyTorch, learning four length scales and the noise", "by", "evaluations", "log p(y)")
    base = torch_kernel("RBFKernel", {"lengthscale": [[1.0] * 4]}, ard_num_dims=4)
    process: Any = gaussian_process(torch_kernel("ScaleKernel", {"outputscale": 1.0}, base_kernel=base), 0.1)
    optimiser = torch.optim.Adam(process.train().parameters(), lr=0.1)
    for step in range(2001):
        optimiser.zero_grad()
        value: Any = log_likelihood(process)
        if step in (50, 200, 2000):
            table.add("`ExactMarginalLogLikelihood`, Adam with steps of 0.1", step, f"{value.item():.1f}")
        (-value).backward()
        optimiser.step()
    found = learn(Gaussian(sigma=[1.0] * 4), X, TARGETS[:, None], ["sigma"])
    reached = our_log_likelihood(found.kernel, found.noise)
    table.add("mercer, L-BFGS on the evidence", found.evaluations, f"{reached:.1f}")
    return table


# ----------------------------------------------------------------------------------------------------- GraKeL


def some_graphs() -> list[list]:
    """Twelve connected graphs of four to eight labelled nodes, as GraKeL takes them."""
    rng, found = np.random.default_rng(1), []
    for _ in range(12):
        n = int(rng.integers(4, 9))
        A = np.eye(n, k=1, dtype=bool) | np.triu(rng.random((n, n)) < 0.25, 1)
        edges = {(int(i), int(j)) for i, j in np.argwhere(A | A.T)}
        found.append([edges, dict(enumerate(rng.choice(list("CNO"), n).tolist()))])
    return found


def matrices(graphs: list[list]) -> list[np.ndarray]:
    """Their adjacency matrices, without labels."""
    found = [np.zeros((len(labels), len(labels))) for _, labels in graphs]
    for A, (edges, _) in zip(found, graphs, strict=True):
        A[tuple(np.array(sorted(edges)).T)] = 1
    return found


def grakel_values(kernel: object, graphs: list) -> np.ndarray:
    """The matrix of a kernel of GraKeL."""
    from grakel import Graph

    made = [Graph(*graph) if isinstance(graph, list) else Graph(graph) for graph in graphs]
    values: np.ndarray = kernel.fit_transform(made)  # type: ignore[attr-defined]
    return values


def grakel_case(theirs: str, ours: mercer.Kernel, are_labelled: bool = True) -> None:
    """Register a line of theirs, which is Python, and our kernel."""

    def run() -> tuple[object, object]:
        from grakel import kernels

        graphs: list = some_graphs() if are_labelled else matrices(some_graphs())
        return grakel_values(eval(theirs, vars(kernels)), graphs), ours(graphs)

    case("GraKeL", f"`{theirs}`", f"`{ours!r}`", "kernel values")(run)


for _theirs, _ours in (
    ("WeisfeilerLehman(n_iter=5, base_graph_kernel=VertexHistogram)", mercer.WeisfeilerLehman(5)),
    (
        "WeisfeilerLehman(n_iter=5, normalize=True, base_graph_kernel=VertexHistogram)",
        mercer.WeisfeilerLehman(5).normalized(),
    ),
    (
        "WeisfeilerLehman(n_iter=2, base_graph_kernel=ShortestPath)",
        mercer.WeisfeilerLehman(2, base=mercer.ShortestPath()),
    ),
    (
        "WeisfeilerLehmanOptimalAssignment(n_iter=3)",
        mercer.WeisfeilerLehman(3, base=mercer.NodeLabels("minimum")),
    ),
    ("VertexHistogram()", mercer.NodeLabels()),
    ("ShortestPath()", mercer.ShortestPath()),
):
    grakel_case(_theirs, _ours)
grakel_case("ShortestPath(with_labels=False)", mercer.ShortestPath(), are_labelled=False)
grakel_case(
    'RandomWalk(lamda=0.1, p=4, method_type="baseline")', mercer.RandomWalk(4, decay=0.1), are_labelled=False
)
grakel_case("RandomWalk(lamda=0.01)", mercer.RandomWalk(400, decay=0.01), are_labelled=False)


@case(
    "GraKeL",
    '`RandomWalkLabeled(lamda=0.01, method_type="baseline")`, less the pairs of nodes with unlike labels',
    f"`{mercer.RandomWalk(400, decay=0.01)!r}`",
    "kernel values",
)
def _() -> tuple[object, object]:
    from grakel.kernels import RandomWalkLabeled

    graphs = some_graphs()
    sizes = np.array([len(labels) for _, labels in graphs])
    unlike = np.outer(sizes, sizes) - mercer.NodeLabels()(graphs)
    return grakel_values(
        RandomWalkLabeled(lamda=0.01, method_type="baseline"), graphs
    ) - unlike, mercer.RandomWalk(400, decay=0.01)(graphs)


def main(wanted: list[str]) -> None:
    """Run both sides of every case whose peer is installed, and write the tables."""
    tables = []
    for peer, (_, names) in PEERS.items():
        if not installed(peer):
            print(f"{peer} is not installed: not run")
        elif peer in wanted or not wanted:
            versions = ", ".join(f"{name} {version(name).split('+')[0]}" for name in names)
            table = Table(peer, f"{versions}", "mercer", "what is compared", "largest relative difference")
            for one in CASES:
                if one.peer == peer:
                    table.add(one.theirs, one.ours, one.compared, f"{one.difference():.0e}")
            tables += [table, learning()] if peer == "GPyTorch" else [table]
    write("migration", *tables)


if __name__ == "__main__":
    main(sys.argv[1:])
