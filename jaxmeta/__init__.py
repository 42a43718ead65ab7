"""Meta word embeddings by weighted concatenation, in JAX, with the theory checked.

Modules are the map: `spectral` (signals, spectra, embeddings), `pip` (the PIP loss), `bounds`
(Lemmas 1 and 2, Theorem 1 corrected, for N sources), `weights` (source and dimension weights),
`combine` (meta-embeddings), `linalg` (what they all stand on). Their public names are also here.
"""

from jaxmeta.bounds import BoundTerms as BoundTerms
from jaxmeta.bounds import Lemma1 as Lemma1
from jaxmeta.bounds import SourceOrder as SourceOrder
from jaxmeta.bounds import best_order as best_order
from jaxmeta.bounds import bound_terms as bound_terms
from jaxmeta.bounds import lemma1 as lemma1
from jaxmeta.combine import concatenate as concatenate
from jaxmeta.linalg import principal_sines as principal_sines
from jaxmeta.linalg import procrustes as procrustes
from jaxmeta.pip import pip_loss as pip_loss
from jaxmeta.pip import pip_matrix as pip_matrix
from jaxmeta.spectral import Spectrum as Spectrum
from jaxmeta.spectral import blocks as blocks
from jaxmeta.spectral import decompose as decompose
from jaxmeta.spectral import embed as embed
from jaxmeta.spectral import spectrum_of as spectrum_of
from jaxmeta.spectral import validate as validate
from jaxmeta.weights import dimension_weights as dimension_weights
from jaxmeta.weights import source_weights as source_weights
from jaxmeta.weights import sum_to_one as sum_to_one

__version__ = "0.1.0"
