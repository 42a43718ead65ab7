"""Meta word embeddings by weighted concatenation, in JAX, with the theory checked.

Modules are the map: `corpus` and `counting` (text to counts), `signals` (counts to signals),
`spectral` (signals, spectra, embeddings), `eigen` (leading eigenpairs of large signals), `noise`
(what noise does to a spectrum, and undoing it), `pip` (the PIP loss and the dimensionality),
`bounds` (Lemmas 1 and 2, Theorem 1 corrected, for N sources), `weights` (in closed form),
`quadratic` (exact weights, and descent), `sources` (all of it, from corpora to source embeddings),
`vectors` (vector files), `alignment` (to the same words) and `merge` (from files to a file),
`prepare` (sources of unknown origin), `combine`, `one_ton`, `locally_linear` and `autoencode`
(meta-embeddings), `methods` (all of them by name), `diagnosis` (what each source does to one),
`evaluate` (scores in tasks), `synthetic` (text with a known ideal), `progress`, and `linalg` and
`optimise` (what the others stand on). Their public names are also here.
"""

from jaxmeta._files import Cache as Cache
from jaxmeta._files import write_whole as write_whole
from jaxmeta.alignment import Aligned as Aligned
from jaxmeta.alignment import Coverage as Coverage
from jaxmeta.alignment import align as align
from jaxmeta.alignment import predict_missing as predict_missing
from jaxmeta.autoencode import Autoencoded as Autoencoded
from jaxmeta.autoencode import Autoencoder as Autoencoder
from jaxmeta.autoencode import Layer as Layer
from jaxmeta.autoencode import averaged_autoencoder as averaged_autoencoder
from jaxmeta.autoencode import concatenated_autoencoder as concatenated_autoencoder
from jaxmeta.autoencode import decoupled_autoencoder as decoupled_autoencoder
from jaxmeta.autoencode import encode as encode
from jaxmeta.bounds import BoundTerms as BoundTerms
from jaxmeta.bounds import Lemma1 as Lemma1
from jaxmeta.bounds import SourceOrder as SourceOrder
from jaxmeta.bounds import best_order as best_order
from jaxmeta.bounds import bound_terms as bound_terms
from jaxmeta.bounds import lemma1 as lemma1
from jaxmeta.bounds import select_sources as select_sources
from jaxmeta.combine import RotatedAverage as RotatedAverage
from jaxmeta.combine import average as average
from jaxmeta.combine import concatenate as concatenate
from jaxmeta.combine import principal_axes as principal_axes
from jaxmeta.combine import rotate as rotate
from jaxmeta.combine import rotated_average as rotated_average
from jaxmeta.combine import svd_reduce as svd_reduce
from jaxmeta.corpus import Corpus as Corpus
from jaxmeta.corpus import Vocabulary as Vocabulary
from jaxmeta.corpus import build_vocabulary as build_vocabulary
from jaxmeta.corpus import given_vocabulary as given_vocabulary
from jaxmeta.corpus import intersection_vocabulary as intersection_vocabulary
from jaxmeta.corpus import lower_words as lower_words
from jaxmeta.corpus import union_vocabulary as union_vocabulary
from jaxmeta.corpus import whitespace as whitespace
from jaxmeta.counting import Counts as Counts
from jaxmeta.counting import contiguous_halves as contiguous_halves
from jaxmeta.counting import count_windows as count_windows
from jaxmeta.counting import inverse_distance as inverse_distance
from jaxmeta.counting import load_counts as load_counts
from jaxmeta.counting import random_blocks as random_blocks
from jaxmeta.counting import released_window as released_window
from jaxmeta.counting import save_counts as save_counts
from jaxmeta.counting import symmetric_window as symmetric_window
from jaxmeta.diagnosis import Diagnosis as Diagnosis
from jaxmeta.diagnosis import Part as Part
from jaxmeta.diagnosis import cosine_shares as cosine_shares
from jaxmeta.diagnosis import diagnose as diagnose
from jaxmeta.diagnosis import disagreement as disagreement
from jaxmeta.diagnosis import plot_diagnosis as plot_diagnosis
from jaxmeta.eigen import Density as Density
from jaxmeta.eigen import Eigenpairs as Eigenpairs
from jaxmeta.eigen import eigenvalue_density as eigenvalue_density
from jaxmeta.eigen import leading_eigenpairs as leading_eigenpairs
from jaxmeta.eigen import multiply_by as multiply_by
from jaxmeta.linalg import principal_sines as principal_sines
from jaxmeta.linalg import procrustes as procrustes
from jaxmeta.locally_linear import LocallyLinear as LocallyLinear
from jaxmeta.locally_linear import best_reconstructed as best_reconstructed
from jaxmeta.locally_linear import locally_linear as locally_linear
from jaxmeta.locally_linear import nearest_neighbours as nearest_neighbours
from jaxmeta.locally_linear import reconstruction_matrix as reconstruction_matrix
from jaxmeta.locally_linear import reconstruction_weights as reconstruction_weights
from jaxmeta.merge import merge_files as merge_files
from jaxmeta.methods import METHODS as METHODS
from jaxmeta.methods import Method as Method
from jaxmeta.methods import Settings as Settings
from jaxmeta.methods import meta_embedding as meta_embedding
from jaxmeta.noise import Strengths as Strengths
from jaxmeta.noise import complete_spectrum as complete_spectrum
from jaxmeta.noise import debias as debias
from jaxmeta.noise import effective_rank as effective_rank
from jaxmeta.noise import ideal_strengths as ideal_strengths
from jaxmeta.noise import noise_std as noise_std
from jaxmeta.noise import overlap as overlap
from jaxmeta.noise import released_noise_std as released_noise_std
from jaxmeta.noise import rotation_invariant as rotation_invariant
from jaxmeta.noise import rotation_invariant_rectangular as rotation_invariant_rectangular
from jaxmeta.noise import spiked_strengths as spiked_strengths
from jaxmeta.noise import usvt as usvt
from jaxmeta.noise import usvt_rank as usvt_rank
from jaxmeta.one_ton import OneToN as OneToN
from jaxmeta.one_ton import one_to_n as one_to_n
from jaxmeta.one_ton import one_to_n_plus as one_to_n_plus
from jaxmeta.one_ton import released_one_to_n as released_one_to_n
from jaxmeta.optimise import Minimum as Minimum
from jaxmeta.optimise import minimise as minimise
from jaxmeta.optimise import non_negative as non_negative
from jaxmeta.optimise import simplex as simplex
from jaxmeta.pip import SimulatedCurve as SimulatedCurve
from jaxmeta.pip import best_dimension as best_dimension
from jaxmeta.pip import paper_curve as paper_curve
from jaxmeta.pip import paper_dimension as paper_dimension
from jaxmeta.pip import pip_curve as pip_curve
from jaxmeta.pip import pip_loss as pip_loss
from jaxmeta.pip import pip_matrix as pip_matrix
from jaxmeta.pip import predicted_curve as predicted_curve
from jaxmeta.pip import released_dimension as released_dimension
from jaxmeta.pip import select_dimension as select_dimension
from jaxmeta.pip import simulate_curve as simulate_curve
from jaxmeta.prepare import agreement_weights as agreement_weights
from jaxmeta.prepare import balanced_exponent as balanced_exponent
from jaxmeta.prepare import centre as centre
from jaxmeta.prepare import rank_weights as rank_weights
from jaxmeta.prepare import remove_leading as remove_leading
from jaxmeta.prepare import spectrum_power as spectrum_power
from jaxmeta.prepare import standardise as standardise
from jaxmeta.prepare import unit_frobenius as unit_frobenius
from jaxmeta.prepare import unit_rows as unit_rows
from jaxmeta.prepare import unit_spectral as unit_spectral
from jaxmeta.progress import ProgressBar as ProgressBar
from jaxmeta.quadratic import PipQuadratic as PipQuadratic
from jaxmeta.quadratic import Solution as Solution
from jaxmeta.quadratic import exact_weights as exact_weights
from jaxmeta.quadratic import gradient_weights as gradient_weights
from jaxmeta.quadratic import per_source as per_source
from jaxmeta.quadratic import pip_quadratic as pip_quadratic
from jaxmeta.quadratic import quadratic_loss as quadratic_loss
from jaxmeta.signals import log_count as log_count
from jaxmeta.signals import ppmi as ppmi
from jaxmeta.signals import shifted_pmi as shifted_pmi
from jaxmeta.sources import RULES as RULES
from jaxmeta.sources import Recipe as Recipe
from jaxmeta.sources import Source as Source
from jaxmeta.sources import build_sources as build_sources
from jaxmeta.spectral import Spectrum as Spectrum
from jaxmeta.spectral import blocks as blocks
from jaxmeta.spectral import decompose as decompose
from jaxmeta.spectral import embed as embed
from jaxmeta.spectral import spectrum_of as spectrum_of
from jaxmeta.spectral import validate as validate
from jaxmeta.synthetic import LatentModel as LatentModel
from jaxmeta.synthetic import expected_counts as expected_counts
from jaxmeta.synthetic import latent_model as latent_model
from jaxmeta.synthetic import sample_tokens as sample_tokens
from jaxmeta.synthetic import write_corpus as write_corpus
from jaxmeta.vectors import DuplicateWords as DuplicateWords
from jaxmeta.vectors import Vectors as Vectors
from jaxmeta.vectors import as_vectors as as_vectors
from jaxmeta.vectors import read_vectors as read_vectors
from jaxmeta.vectors import to_gensim as to_gensim
from jaxmeta.vectors import write_vectors as write_vectors
from jaxmeta.weights import aligned_weights as aligned_weights
from jaxmeta.weights import dimension_weights as dimension_weights
from jaxmeta.weights import released_dimension_weights as released_dimension_weights
from jaxmeta.weights import released_source_weights as released_source_weights
from jaxmeta.weights import shrinkage_weights as shrinkage_weights
from jaxmeta.weights import source_weights as source_weights
from jaxmeta.weights import strength_weights as strength_weights
from jaxmeta.weights import sum_to_one as sum_to_one

__version__ = "0.1.0"
