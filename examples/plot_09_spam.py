r"""
A spam filter that reads raw mail
=================================

A mail is more than its words: there is a sender, a path of computers it came by, a time, links, an
encoding. **Which of these give spam away?** ``MailClassifier`` reads raw messages with all their headers,
makes a bag of each aspect, and weighs the aspects.
"""

# %%
# Messages
# --------
# We write 120 of our own, half of them spam, so that the lesson runs everywhere. Some spam has harmless
# words, and some friends write about money: neither the words nor the sender alone are enough.

import matplotlib.pyplot as plt
import numpy as np

from mercer import MailClassifier
from mercer.features.email import read

rng = np.random.default_rng(0)
people = ["ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal", "ida", "jim", "kay", "leo"]
offers = [
    "cheap pills now",
    "win money today",
    "you have won a prize",
    "hello, how are you",
    "your account is locked",
]
talks = [
    "lunch at noon?",
    "the draft of chapter two",
    "hello, how are you",
    "money for the trip",
    "notes of the meeting",
]


def message(is_spam):
    name, friend = rng.choice(people, 2, replace=False)
    text = rng.choice(offers if is_spam else talks)
    host = (
        f"{rng.choice(['shop', 'bank-secure', 'deal'])}{rng.integers(99)}.example"
        if is_spam
        else "work.example"
    )
    address = "185.220.1" if is_spam else "10.0.0"
    hour = rng.integers(0, 6) if is_spam else rng.integers(8, 19)
    link = f"\nhttp://{host}/click?id={rng.integers(9999)}" if is_spam and rng.random() < 0.7 else ""
    return (
        f"Received: from {host} ({host} [{address}.{rng.integers(1, 250)}]) by mail.me.example;\n"
        f" Tue, 3 Jan 2012 {hour:02d}:17:51 +0000\n"
        f"From: {name} <{name}@{host}>\nTo: {friend}@me.example\n"
        f"Date: Tue, 3 Jan 2012 {hour:02d}:17:47 +0000\n"
        f"Subject: {text}\n\nDear {friend}, {text} {rng.choice(['please', 'soon', 'thanks'])}.{link}\n{name}"
    )


labels = np.array(["spam", "ham"] * 60)
mails = [message(label == "spam") for label in labels]
print(mails[0])

# %%
# What the reader sees in it
# --------------------------

mail = read(mails[0])
print("words:  ", sorted(mail.words)[:6])
print("pairs:  ", sorted(mail.pairs)[:4])
print("links:  ", sorted(mail.links)[:4])
print("sender: ", sorted(mail.sender)[:4])
print("time:   ", sorted(mail.time)[:4])

# %%
# Learning, and why it decides as it does
# ---------------------------------------

model = MailClassifier().fit(mails[:80], labels[:80])
print(f"right on {100 * model.score(mails[80:], labels[80:]):.0f} % of {len(mails) - 80} new messages")
new = mails[80]
why = model.explain(new)
print(f"the first new message is {why.label}: f = {why.value:.2f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
weights = dict(sorted(model.weights_.items(), key=lambda item: item[1]))
left.barh(list(weights), list(weights.values()), color="#0072B2")
left.set(title="how much each aspect counts", xlabel="weight")
strongest = sorted(why.elements, key=lambda part: -abs(part[2]))[:10][::-1]
terms = [term for _, _, term in strongest]
colours = np.where(np.array(terms) > 0, "#D55E00", "#0072B2")
right.barh([f"{aspect}: {element[:28]}" for aspect, element, _ in strongest], terms, color=colours)
right.axvline(0, color="0.3", linewidth=0.8)
right.set(
    title=f"one message, said to be {why.label}", xlabel=f"contribution to f (right: {model.classes_[1]})"
)

# %%
# **What to see.** Left, the filter has found by itself which aspects tell most. Right, the decision about
# one message is a sum, one term for each thing that was found in it; nothing is hidden.
