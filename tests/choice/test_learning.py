"""What an outcome does to a row of preferences: pencil values and plain-Python programs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketeval.choice.preference import (
    BETA,
    DRIFT,
    EXPONENTIAL,
    MEAN,
    enter,
    evidence,
    learn,
    leave,
    worth,
)
from marketeval.choice.utility import reliability, utility

NAN = math.nan
HISTORY = st.lists(st.tuples(st.integers(0, 3), st.floats(-1, 1)), max_size=40)
FORGETTING = st.sampled_from([0.0, 0.1, 1.0])


def teach(kind, first, second, agent, signal, *, rate=0.1, floor=0.01, forgetting=0.0, prior=0.0):
    first, second = np.array(first, float), np.array(second, float)
    learn(kind, first, second, agent, signal, rate, floor, forgetting, prior)
    return first, second


def entered(kind, first, second, agent, prior=0.0):
    first, second = np.array([first], float), np.array([second], float)
    enter(np.array([kind]), first, second, agent, np.array([prior]))
    return first[0], second[0]


def test_success_under_drift_adds_a_tenth_and_renormalises():
    first, _ = teach(DRIFT, [0.5, 0.3, 0.2], [0] * 3, 0, 1.0)
    assert first.tolist() == pytest.approx([6 / 11, 3 / 11, 2 / 11], rel=1e-15)


def test_failure_under_drift_takes_a_tenth_and_renormalises():
    first, _ = teach(DRIFT, [0.5, 0.3, 0.2], [0] * 3, 0, -1.0)
    assert first.tolist() == pytest.approx([4 / 9, 3 / 9, 2 / 9], rel=1e-15)


def test_drift_stops_at_the_floor_before_it_renormalises():
    first, _ = teach(DRIFT, [0.05, 0.95], [0, 0], 0, -1.0)
    assert first.tolist() == pytest.approx([0.01 / 0.96, 0.95 / 0.96], rel=1e-15)


def test_an_agent_not_yet_known_starts_from_the_floor():
    first, _ = teach(DRIFT, [0.5, 0.5, NAN], [0] * 3, 2, 1.0)
    assert first.tolist() == pytest.approx([0.5 / 1.11, 0.5 / 1.11, 0.11 / 1.11], rel=1e-15)


def test_where_a_floor_of_zero_leaves_nothing_the_known_share_evenly():
    first, _ = teach(DRIFT, [1.0, 0.0, NAN], [0] * 3, 0, -1.0, rate=1.0, floor=0.0)
    assert first.tolist()[:2] == [0.5, 0.5]
    assert math.isnan(first[2])


def test_exponential_average_and_running_mean_by_pencil():
    first, second = teach(EXPONENTIAL, [0.5, 0.0], [3, 0], 0, -1.0, rate=0.2)
    assert (first[0], second[0]) == (pytest.approx(0.2), 4)
    first, second = teach(MEAN, [0.5, 0.0], [3, 0], 0, -1.0)
    assert (first[0], second[0]) == (pytest.approx(0.125), 4)
    first, second = teach(MEAN, [0.9, 0.0], [0, 0], 0, -0.25)
    assert (first[0], second[0]) == (pytest.approx(-0.25), 1)


def test_beta_counts_by_pencil():
    first, second = teach(BETA, [1, 1], [1, 1], 0, 0.5)
    assert (first[0], second[0]) == (1.75, 1.25)
    first, second = teach(BETA, [1, 1], [1, 1], 1, -7.0)
    assert (first[1], second[1]) == (1.0, 2.0)
    assert worth(BETA, 3.0, 1.0) == 0.75
    assert evidence(BETA, 3.0, 1.0) == 4.0


def test_forgetting_moves_towards_what_was_known_at_the_start():
    first, _ = teach(DRIFT, [0.8, 0.2], [0, 0], 0, 0.0, forgetting=0.5)
    assert first.tolist() == pytest.approx([0.65, 0.35])
    first, second = teach(EXPONENTIAL, [0.8, 0.4], [1, 1], 0, 0.6, forgetting=0.5, prior=0.2)
    assert first.tolist() == pytest.approx([0.5 + 0.1 * 0.1, 0.3])
    first, second = teach(MEAN, [0.8, 0.4], [4, 2], 0, -1.0, forgetting=0.5)
    assert second.tolist() == [3, 1]
    assert first.tolist() == pytest.approx([0.8 - 1.8 / 3, 0.4])
    first, second = teach(BETA, [5, 3], [3, 1], 0, 1.0, forgetting=0.5)
    assert first.tolist() == [4, 2]
    assert second.tolist() == [2, 1]


class PlainRow:
    """The four kinds again, with dictionaries."""

    def __init__(self, kind, agents, rate, floor, forgetting, prior):
        self.kind, self.rate, self.floor = kind, rate, floor
        self.forgetting, self.prior = forgetting, prior
        self.value = {a: {DRIFT: 1 / agents, BETA: 1.0}.get(kind, prior) for a in range(agents)}
        self.other = dict.fromkeys(range(agents), 1.0 if kind == BETA else 0.0)

    def learn(self, agent, signal):
        f, v, o = self.forgetting, self.value, self.other
        for a in v:
            if self.kind == DRIFT:
                v[a] = (1 - f) * v[a] + f / len(v)
            elif self.kind == EXPONENTIAL:
                v[a] = (1 - f) * v[a] + f * self.prior
            elif self.kind == MEAN:
                o[a] *= 1 - f
            else:
                v[a], o[a] = (1 - f) * v[a] + f, (1 - f) * o[a] + f
        if self.kind == DRIFT:
            v[agent] = max(self.floor, v[agent] + self.rate * signal)
            total = sum(v.values())
            for a in v:
                v[a] /= total
        elif self.kind == EXPONENTIAL:
            v[agent] = (1 - self.rate) * v[agent] + self.rate * signal
            o[agent] += 1
        elif self.kind == MEAN:
            v[agent] = (v[agent] * o[agent] + signal) / (o[agent] + 1)
            o[agent] += 1
        else:
            v[agent] += (signal + 1) / 2
            o[agent] += 1 - (signal + 1) / 2


@pytest.mark.parametrize("kind", [DRIFT, EXPONENTIAL, MEAN, BETA])
@given(history=HISTORY, rate=st.floats(0.01, 1), forgetting=FORGETTING, prior=st.floats(-1, 1))
def test_every_kind_follows_its_plain_program_through_any_history(
    kind, history, rate, forgetting, prior
):
    plain = PlainRow(kind, 4, rate, 0.01, forgetting, prior)
    first, second = np.array(list(plain.value.values())), np.array(list(plain.other.values()))
    for agent, signal in history:
        plain.learn(agent, signal)
        learn(kind, first, second, agent, signal, rate, 0.01, forgetting, prior)
    assert first.tolist() == pytest.approx(list(plain.value.values()), rel=1e-9, abs=1e-12)
    assert second.tolist() == pytest.approx(list(plain.other.values()), rel=1e-9, abs=1e-12)


@given(
    history=st.lists(
        st.tuples(
            st.sampled_from(["learn", "enter", "leave"]), st.integers(0, 9), st.floats(-9, 9)
        ),
        max_size=60,
    ),
    floor=st.sampled_from([0.0, 0.01, 0.5]),
    rate=st.floats(0, 1),
    forgetting=FORGETTING,
)
def test_preferences_under_drift_stay_shares_that_sum_to_one(history, floor, rate, forgetting):
    first, second = np.full(10, NAN), np.zeros(10)
    first[:3] = 1 / 3
    known, kinds = {0, 1, 2}, np.array([DRIFT])
    for act, agent, signal in history:
        if act == "enter":
            enter(kinds, first[None, :], second[None, :], agent, np.zeros(1))
            known.add(agent)
        elif act == "leave":
            leave(kinds, first[None, :], second[None, :], agent)
            known.discard(agent)
        elif agent in known:
            learn(DRIFT, first, second, agent, signal, rate, floor, forgetting, 0.0)
        assert set(np.flatnonzero(~np.isnan(first)).tolist()) == known
        if known:
            assert np.nansum(first) == pytest.approx(1.0, abs=1e-12)
            assert np.nanmin(first) >= 0


def test_an_entrant_gets_one_over_n_plus_one_and_scales_the_others():
    first, _ = entered(DRIFT, [0.5, NAN, 0.3, 0.2], [0] * 4, 1)
    assert first.tolist() == pytest.approx([0.375, 0.25, 0.225, 0.15], rel=1e-15)


def test_of_two_entrants_at_one_step_the_second_scales_the_first():
    first, second = entered(DRIFT, [0.5, NAN, 0.5, NAN], [0] * 4, 1)
    assert first[1] == pytest.approx(1 / 3)
    first, _ = entered(DRIFT, first, second, 3)
    assert first.tolist() == pytest.approx([0.25, 0.25, 0.25, 0.25], rel=1e-15)


def test_an_entrant_that_is_known_already_changes_nothing():
    assert entered(DRIFT, [0.7, 0.3], [0, 0], 1)[0].tolist() == [0.7, 0.3]
    assert entered(BETA, [7, 3], [2, 5], 1)[1].tolist() == [2, 5]


def test_an_entrant_among_nobody_gets_everything():
    first, _ = entered(DRIFT, [NAN, NAN], [0, 0], 1)
    assert first[1] == 1.0


def test_what_an_entrant_gets_where_no_shares_are_kept():
    assert [x[1] for x in entered(MEAN, [0.4, NAN], [3, 9], 1, prior=0.3)] == [0.3, 0.0]
    assert [x[1] for x in entered(EXPONENTIAL, [0.4, NAN], [3, 9], 1, prior=-0.5)] == [-0.5, 0.0]
    assert [x[1] for x in entered(BETA, [4, NAN], [3, 0], 1)] == [1.0, 1.0]


def test_who_leaves_is_forgotten_and_shared_out_by_size():
    first, second = np.array([[0.5, 0.3, 0.2]]), np.array([[1.0, 2.0, 3.0]])
    leave(np.array([DRIFT]), first, second, 0)
    assert np.isnan(first[0, 0])
    assert first[0, 1:].tolist() == pytest.approx([0.6, 0.4], rel=1e-15)
    assert second[0, 0] == 0.0


def test_utility_is_the_papers_sum_and_leaves_out_what_nobody_minds():
    assert utility(1.0, 0.02, 3.0, 0.5, 2.0, 10.0, 0.1, 0.4) == pytest.approx(2 - 0.2 - 0.3 + 0.2)
    assert utility(0.5, NAN, NAN, 0.5, 1.0, 0.0, 0.0, 0.0) == 0.5
    assert math.isnan(utility(0.5, NAN, 1.0, 0.5, 1.0, 1.0, 0.0, 0.0))


def test_trust_is_one_half_before_any_experience_and_laplaces_mean_after():
    assert reliability(0.0, 0.0) == 0.5
    assert reliability(3.0, 4.0) == pytest.approx(4 / 6)
