"""Losses for complementary labels that are not uniform: pure functions of logits, in float32 or wider.

Which one survives what:

* questions about some classes come more often, chosen without a look at the image: all three, forward
  correction with the matrix of that choice;
* questions depend on the image and on earlier answers about it, with recorded probabilities: the
  inverse-probability risk;
* wrong answers, or labels that depend on the true class: forward correction with their matrix.

The likelihood -log(1 - p) is a middle way: "no to k" has probability 1 - p_k however k was chosen. So with
true labels for the yes answers, each answer weighing the same, it survives any choice of questions that
knows the image and earlier answers alone. From the no answers alone, or with another weight of the yes
answers, it does so only where each image has one possible class.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from clarinet.losses.complementary import one_hot


def forward_complementary_loss(logits: Tensor, labels: Tensor, weights: Tensor, transition: Tensor) -> Tensor:
    """Weighted mean of -log sum_y p_y Q[y, label]: the likelihood of the labels under a transition matrix.

    The matrix maps what the network says about true classes forward to what people say. In the limit of much
    data the minimum is the true posterior whenever Q is right and invertible. A Q with a positive diagonal
    bounds what one wrong label can cost, as noise does in `bounded_complementary_loss`. With a uniform Q this
    is that loss, up to the constant log(K - 1).

    Args:
        logits: (N, K) scores before softmax.
        labels: (N,) int64 complementary labels.
        weights: (N,) >= 0, not all 0.
        transition: (K, K), Q[y, k] = P(complementary = k | true = y); rows sum to 1. A label must be possible
            under some class.

    Returns:
        () loss in nats.

    Source: Yu et al., Learning with Biased Complementary Labels, 2018, section 4; Patrini et al., 2017.
    """
    log_p = F.log_softmax(logits, dim=1)  # (N, K)
    log_given = transition.to(log_p.dtype).log().T[labels]  # (N, K), -inf where a class excludes the label
    return -(weights * (log_p + log_given).logsumexp(1)).sum() / weights.sum()


def scarce_risks(
    logits: Tensor,
    labels: Tensor,
    weights: Tensor,
    class_shares: Tensor,
    named_shares: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Split the one-versus-rest logistic risk by class, into images of the class and images of the others.

    With phi(z) = log(1 + exp(-z)), pi_k the share of class k and means over the images labelled "not k",

        of the class:   R+_k = mean_all phi(z_k) - (1 - pi_k) mean_not_k phi(z_k)
        of the others:  R-_k = (1 - pi_k) mean_not_k phi(-z_k)

    have the expectations pi_k E[phi(z_k) | y = k] and (1 - pi_k) E[phi(-z_k) | y != k]. That holds when the
    images labelled "not k" are a random sample of those that are not k ("selected completely at random"). How
    often a class is named does not matter. One question per image, about a class drawn without a look at it,
    gives such a sample. Then `mean_all` runs over all images asked about, those with a yes too. Exactly one
    label per image gives it only when the labels are uniform.

    Args:
        logits: (N, K) scores; here each class is a separate yes/no decision, the largest score wins.
        labels: (N,) int64 complementary labels, -1 for an image that only counts among all.
        weights: (N,) >= 0, not all 0.
        class_shares: (K,) pi_k in [0, 1].
        named_shares: (K,) share of all images that is labelled "not k" in the data set. None takes the
            batch's own; a label absent from the batch then loses its terms.

    Returns:
        (K,) R+ and (K,) R-, in nats. Entries of R+ can be negative by chance; those of R- cannot.

    Source: Wang et al., Learning with Complementary Labels Revisited: The Selected-Completely-at-Random
    Setting Is More Practical, 2024.
    """
    share = (weights / weights.sum())[:, None]  # (N, 1)
    given = one_hot(labels, logits.shape[1]).to(logits.dtype)  # (N, K), zeros for -1
    named = (share * given).sum(0) if named_shares is None else named_shares  # (K,)
    other = (1 - class_shares) / named.clamp(min=torch.finfo(logits.dtype).tiny)  # (K,)
    other = torch.where(named > 0, other, torch.zeros_like(other))
    yes, no = F.softplus(-logits), F.softplus(logits)  # (N, K)
    of_class = (share * (1 - other * given) * yes).sum(0)
    of_others = (share * other * given * no).sum(0)
    return of_class, of_others


def corrected_scarce_objective(of_class: Tensor, of_others: Tensor) -> Tensor:
    """The sum of |R+_k| + R-_k: a risk that is negative only by overfitting is driven back to 0.

    Args:
        of_class, of_others: (K,) each, from `scarce_risks`.

    Returns:
        () objective >= 0.

    Source: as `scarce_risks`, with the absolute value as its correction function.
    """
    return of_class.abs().sum() + of_others.sum()


def per_class_question_risk(
    logits: Tensor,
    classes: Tensor,
    is_yes: Tensor,
    weights: Tensor,
    probabilities: Tensor,
    *,
    yes_share: float,
    excluded: Tensor | None = None,
) -> Tensor:
    """Split the inverse-probability estimate of the cross-entropy risk by class.

    An image of class y has losses l_j = -log p_j. It is asked "is this a k?" with probability q_k > 0, which
    may depend on the image in any way. With S = sum_j l_j,

        a "no" contributes   (S / (K - 1) - l_k) / q_k,   a "yes"   l_k / q_k = l_y / q_y.

    Over the draw either alone has expectation l_y. For the no answers, the sum over k != y of (S / (K - 1) -
    l_k) is S - (S - l_y). For the yes answers there is only k = y. So b yes + (1 - b) no has it, too, for
    each b that does not depend on the draw. The two are never both non-zero, hence

        Var = b^2 A + (1 - b)^2 B - l_y^2,
        A = l_y^2 / q_y,   B = sum over k != y of (S / (K - 1) - l_k)^2 / q_k,

    smallest at b = B / (A + B), which by Cauchy and Schwarz is never below q_y: yes answers deserve at least
    their natural share. Losses of the wrong classes that are equal, and uniform questions, give 1/K exactly.

    A further question about an image knows earlier answers: let R be the classes that no earlier "no" of the
    image names, with q_k > 0 for all k in R and their sum 1. Then the same holds with S summed over R and |R|
    in the place of K: over k in R without y, the sum of (S / (|R| - 1) - l_k) is S - (S - l_y) = l_y again.
    It is conditional on the earlier answers, so q may follow from a model that has seen all of them. A mean
    over questions stays unbiased if which images are asked again depends on no class: all images whose
    answers to uniform questions were no, say, or a random part of these. A wrong earlier "no" leaves y
    outside R and the estimate wrong for that image. All of this is over answers as they were given: labels
    that drop an earlier "no" of an image once it gets a yes leave the mean biased.

    Entry c has expectation 1(y = c) l_y >= 0, so that `corrected_objective` applies; it can be negative.
    With q_k = 1/K and no answers alone this is `per_class_complementary_risk` with the batch's proportions
    times K / (K - 1).

    Args:
        logits: (N, K) scores before softmax, of images whose question has an answer.
        classes: (N,) int64, the class asked about.
        is_yes: (N,) bool, whether the answer was yes.
        weights: (N,) >= 0, not all 0.
        probabilities: (N,) with which the class was drawn for the image, in (0, 1].
        yes_share: b in [0, 1].
        excluded: (N, M) int64, classes that earlier answers had ruled out when the question was drawn, each
            once, -1 beyond those; at least two classes remain, among them the one asked about. None: none.

    Returns:
        (K,) risk per class, in nats.

    Source: Horvitz and Thompson, 1952, on the answers; the form for a no after Ishida et al., 2017.
    """
    num_classes = logits.shape[1]
    loss = -F.log_softmax(logits, dim=1)  # (N, K)
    given = one_hot(classes, num_classes).to(loss.dtype)  # (N, K)
    share = (weights / weights.sum() / probabilities)[:, None]  # (N, 1)
    no = loss / (num_classes - 1) - given * loss  # (N, K)
    if excluded is not None:
        gone = (excluded[:, :, None] == torch.arange(num_classes, device=loss.device)).any(1)  # (N, K)
        others = num_classes - 1 - gone.sum(1, keepdim=True)  # (N, 1)
        no = torch.where(gone, 0.0, loss) / others - given * loss
    answer = torch.where(is_yes[:, None], yes_share * given * loss, (1 - yes_share) * no)
    return (share * answer).sum(0)
