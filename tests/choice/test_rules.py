"""Each choice rule against its formula, and what every rule shares."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from one_user import agree, ask

from marketeval.choice.preference import MEAN, learn
from marketeval.choice.rules import RULES
from marketeval.choice.select import EXPLOIT, NOBODY, choose_with

NAN = math.nan
RULES_AND_LEARNING = [
    ("epsilon_greedy", "drift"),
    ("proportional", "drift"),
    ("logit", "drift"),
    ("ucb1", "mean"),
    ("thompson", "beta"),
]


def softmax(values, temperature):
    powers = [math.exp((value - max(values)) / temperature) for value in values]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_epsilon_greedy_asks_the_favourite_at_one_minus_epsilon_plus_epsilon_over_n(epsilon):
    chosen, explored = ask("epsilon_greedy", [0.1, 0.5, 0.2, 0.2], theta=epsilon)
    assert agree(chosen, [epsilon / 4, 1 - epsilon + epsilon / 4, epsilon / 4, epsilon / 4])
    assert agree(explored.astype(int), [1 - epsilon, epsilon])
    assert (chosen[~explored] == 1).all()


@pytest.mark.parametrize("weights", [[0.7, 0.2, 0.1], [0.01, 0.01, 0.98], [2.0, 6.0, 12.0]])
def test_proportional_choice_has_luces_shares(weights):
    assert agree(ask("proportional", weights)[0], np.array(weights) / sum(weights))


def test_proportional_choice_over_beta_counts_uses_their_means():
    chosen, _ = ask("proportional", [1.0, 3.0], [3.0, 1.0], learning="beta")
    assert agree(chosen, [0.25, 0.75])


@pytest.mark.parametrize("temperature", [0.05, 0.1, 1.0, 100.0])
def test_logit_choice_is_a_softmax(temperature):
    worths = [0.3, 0.2, -0.1, 0.25]
    assert agree(ask("logit", worths, theta=temperature)[0], softmax(worths, temperature))


def test_thompson_sampling_asks_each_agent_with_its_probability_of_being_best():
    a, b = np.array([3.0, 8.0, 1.0]), np.array([4.0, 9.0, 1.0])
    draws = np.random.default_rng(0).beta(a, b, size=(1_000_000, 3))
    best = np.bincount(draws.argmax(axis=1), minlength=3) / 1_000_000
    assert agree(ask("thompson", a, b, learning="beta")[0], best)


def test_thompson_sampling_adds_popularity_to_the_draw():
    a, b, shares = np.array([3.0, 8.0]), np.array([4.0, 2.0]), np.array([1.0, 0.0])
    draws = np.random.default_rng(1).beta(a, b, size=(1_000_000, 2)) + 0.5 * shares
    best = np.bincount(draws.argmax(axis=1), minlength=2) / 1_000_000
    chosen, _ = ask("thompson", a, b, learning="beta", popularity=0.5, shares=shares)
    assert agree(chosen, best)


def ucb1_in_plain_python(rewards, steps, exploration):
    """Auer, Cesa-Bianchi and Fischer (2002), Fig. 1, with rewards in [0, 1]."""
    arms = len(rewards)
    sums, plays, history = [0.0] * arms, [0] * arms, []
    for _ in range(steps):
        untried = [arm for arm in range(arms) if not plays[arm]]
        total = sum(plays)
        arm = untried[0] if untried else max(
            range(arms),
            key=lambda x: sums[x] / plays[x]
            + exploration * math.sqrt(2 * math.log(total) / plays[x]),
        )  # fmt: skip
        history.append(arm)
        sums[arm] += rewards[arm][plays[arm]]
        plays[arm] += 1
    return history


@pytest.mark.parametrize("exploration", [0.0, 0.3, 1.0])
def test_ucb1_follows_an_independent_program_over_a_whole_history(exploration):
    numbers, steps = random.Random(7), 300
    rewards = [
        [round(numbers.random() * rate, 3) for _ in range(steps)] for rate in (1, 0.8, 1, 0.9)
    ]
    expected = ucb1_in_plain_python(rewards, steps, exploration)
    first, second, history = np.zeros(4), np.zeros(4), []
    for step in range(steps):
        arm = int(
            ask("ucb1", first, second, learning="mean", theta=exploration, times=1, step=step)[0][0]
        )
        history.append(arm)
        signal = 2 * rewards[arm][int(second[arm])] - 1
        learn(MEAN, first, second, arm, signal, 0.1, 0.01, 0.0, 0.0)
    assert history == expected


@pytest.mark.parametrize(("rule", "learning"), RULES_AND_LEARNING)
def test_inertia_repeats_the_last_agent_at_its_rate(rule, learning):
    worths, seconds = [0.1, 0.6, 0.3], [4.0, 8.0, 6.0]
    free = ask(rule, worths, seconds, learning=learning, theta=0.2)[0]
    bound = ask(rule, worths, seconds, learning=learning, theta=0.2, inertia=0.4, last=2)[0]
    share = np.bincount(free, minlength=3) / free.size
    expected = 0.6 * share + 0.4 * np.array([0, 0, 1])
    assert np.bincount(bound, minlength=3) / bound.size == pytest.approx(expected, abs=0.02)
    gone = ask(
        rule, worths, seconds, learning=learning, theta=0.2, inertia=0.4, last=2,
        available=[True, True, False],
    )[0]  # fmt: skip
    assert 2 not in gone


def test_a_portfolio_spreads_the_choice_evenly_over_the_best_m():
    worths = [0.05, 0.4, 0.1, 0.3, 0.15]
    assert agree(
        ask("epsilon_greedy", worths, theta=0, portfolio=3)[0], [0, 1 / 3, 0, 1 / 3, 1 / 3]
    )
    assert agree(ask("epsilon_greedy", worths, theta=0, portfolio=9)[0], [0.2] * 5)
    only_two = [True, False, True, False, False]
    found = ask("epsilon_greedy", worths, theta=0, portfolio=3, available=only_two)[0]
    assert agree(found, [0.5, 0, 0.5, 0, 0])


def test_popularity_adds_weight_times_share_to_the_worth():
    shares, worths = [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]
    chosen, _ = ask("proportional", worths, popularity=0.4, shares=shares)
    assert agree(chosen, np.array([0.4, 0.5, 0.5]) / 1.4)
    assert (ask("epsilon_greedy", worths, theta=0, popularity=0.39, shares=shares)[0] == 2).all()
    assert (ask("epsilon_greedy", worths, theta=0, popularity=0.41, shares=shares)[0] == 1).all()


def test_ties_go_to_the_first_in_the_configuration():
    chosen, _ = ask("epsilon_greedy", [0.4, 0.4, 0.2, 0.4], theta=0, tie_rank=[2, 1, 0, 3])
    assert (chosen == 1).all()


def test_keyed_ties_are_even_and_leave_what_is_no_tie_alone():
    chosen, _ = ask("epsilon_greedy", [0.3, 0.3, 0.1, 0.3], theta=0, keyed_ties=True)
    assert agree(chosen, [1 / 3, 1 / 3, 0, 1 / 3])


def test_a_newcomer_leaves_the_incumbents_keyed_ties_as_they_were():
    three = ask("epsilon_greedy", [0.3] * 3, theta=0, keyed_ties=True, seats=["a", "b", "d"])[0]
    four = ask("epsilon_greedy", [0.3] * 4, theta=0, keyed_ties=True, seats=["a", "b", "c", "d"])[0]
    stayed = four != 2
    as_before = np.array([0, 1, 3])[three]
    assert (four[stayed] == as_before[stayed]).all()
    assert agree(stayed.astype(int), [0.25, 0.75])


@pytest.mark.parametrize(
    ("rule", "learning"), [pair for pair in RULES_AND_LEARNING if pair[0] != "ucb1"]
)  # UCB1's bounds depend on everybody's counts by definition
def test_a_newcomer_takes_choices_but_never_moves_one_between_incumbents(rule, learning):
    incumbents = ask(
        rule, [0.3, 0.2, 0.4], [1.0, 1.0, 1.0], learning=learning, theta=0.2, seats=["a", "b", "d"]
    )[0]
    with_c = ask(
        rule, [0.3, 0.2, 0.35, 0.4], [1.0] * 4, learning=learning, theta=0.2,
        seats=["a", "b", "c", "d"],
    )[0]  # fmt: skip
    stayed = with_c != 2
    assert (with_c[stayed] == np.array([0, 1, 3])[incumbents][stayed]).all()
    assert 0.02 < (~stayed).mean() < 0.98


@pytest.mark.parametrize(("rule", "learning"), RULES_AND_LEARNING)
def test_only_available_and_known_agents_are_asked(rule, learning):
    chosen, _ = ask(
        rule, [0.3, 0.3, NAN, 0.2], [2.0] * 4, learning=learning, theta=0.3,
        available=[False, True, True, True],
    )  # fmt: skip
    assert set(chosen.tolist()) <= {1, 3}


@pytest.mark.parametrize(("rule", "learning"), RULES_AND_LEARNING)
def test_who_knows_nobody_that_is_there_may_ask_anybody_that_is(rule, learning):
    state = ([0.5, NAN, NAN], [2.0, 0.0, 0.0])
    chosen, _ = ask(rule, *state, learning=learning, theta=0.3, available=[False, True, True])
    assert set(chosen.tolist()) <= {1, 2}


@pytest.mark.parametrize(("rule", "learning"), RULES_AND_LEARNING)
def test_where_nobody_is_available_nobody_is_asked(rule, learning):
    chosen, explored = ask(rule, [0.5, 0.5], [1.0, 1.0], learning=learning, available=[False] * 2)
    assert (chosen == NOBODY).all()
    assert not explored.any()


def test_a_forced_pick_is_exploration_and_a_forced_favourite_is_not():
    chosen, explored = ask("epsilon_greedy", [0.6, 0.4], forced=1, times=50)
    assert (chosen == 1).all()
    assert explored.all()
    chosen, explored = ask("epsilon_greedy", [0.6, 0.4], forced=EXPLOIT, times=50, theta=1.0)
    assert (chosen == 0).all()
    assert not explored.any()


def test_a_rule_from_outside_chooses_by_its_own_score():
    def contrarian(worth, count, total, theta, code, step, slot):
        return theta - worth

    kernel = choose_with(contrarian)
    state = ([0.5, 0.1, 0.4], [0.0] * 3)
    assert (ask("outside", *state, theta=1.0, kernel=kernel)[0] == 1).all()
    spread, _ = ask("outside", *state, theta=1.0, kernel=kernel, portfolio=2)
    assert agree(spread, [0, 0.5, 0.5])


def test_the_default_parameters_are_those_of_the_literature():
    assert (RULES["epsilon_greedy"].PARAMETER, RULES["epsilon_greedy"].DEFAULT) == ("epsilon", 0.2)
    assert (RULES["ucb1"].PARAMETER, RULES["ucb1"].DEFAULT) == ("exploration", 1.0)
