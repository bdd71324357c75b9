"""A linear support vector machine on few samples of any number of dimensions, solved exactly."""

import numpy as np
from numpy.typing import NDArray


def train(products: NDArray[np.float64], positive: NDArray[np.bool_], cost: float) -> NDArray[np.float64]:
    """Train a machine of squared hinge loss on inner products (n, n) of samples x_i, `positive` (n,) or not. Returns
    ``y_i α_i``: the weight vector is ``w = Σ y_i α_i x_i``, and the bias the sum of the coefficients.

    It minimises ``½ (‖w‖² + b²) + C Σ max(0, 1 - y_i (w·x_i + b))²``. With ``z_i = y_i (x_i, 1)`` the dual is to
    minimise ``½ αᵀ (Z Zᵀ + I / 2C) α - Σ α_i`` over ``α ≥ 0`` (Hsieh et al., ICML 2008, equation 4). With ``L Lᵀ`` for
    the matrix that is the non-negative least squares problem ``‖Lᵀ α - L⁻¹ 1‖²``, which has one solution, found in
    finitely many steps.
    """
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import nnls
    from threadpoolctl import threadpool_limits

    signs = np.where(positive, 1.0, -1.0)
    dual = (products + 1.0) * np.outer(signs, signs)
    dual[np.diag_indices(len(dual))] += 0.5 / cost
    # An enclosing `one_thread` does not limit SciPy's linear algebra if it was loaded after it.
    with threadpool_limits(1, user_api="blas"):
        lower = cholesky(dual, lower=True)
        alpha, _ = nnls(lower.T, solve_triangular(lower, np.ones(len(dual)), lower=True))
    return np.asarray(signs * alpha)
