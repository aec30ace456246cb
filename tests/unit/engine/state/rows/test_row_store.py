"""RowStore against a dict."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.api.key_groups import key_group_range
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.rows.row_store import RowStore
from tests.harness.length import examples

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.list_(pa.string()))])


def batch(numbers):
    return pa.record_batch(
        [
            pa.array(numbers, pa.int64()),
            pa.array([[str(n)] if n % 3 else None for n in numbers], pa.list_(pa.string())),
        ],
        schema=SCHEMA,
    )


def value(number):
    return {"k": number, "v": [str(number)] if number % 3 else None}


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.lists(st.integers(0, 30), max_size=40)), max_size=15),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_row_store_like_a_dict(steps, append_only, random):
    store, model = RowStore(SCHEMA, append_only=append_only), {}
    for most, numbers in steps:
        if most:
            weights = [n % most + 1 for n in numbers]
            ids = store.append(
                batch(numbers), np.array(weights, np.int64) if most > 1 or len(numbers) % 2 else None
            ).tolist()
            assert not set(ids) & set(model)
            model |= {i: [n, weight] for i, n, weight in zip(ids, numbers, weights, strict=True)}
        elif model:
            ids = random.choices(sorted(model), k=len(numbers))
            ids = list(dict.fromkeys(ids))
            gone = store.add_weights(np.array(ids, np.int64), np.full(len(ids), -1)).tolist()
            for i in ids:
                model[i][1] -= 1
            dead = [i for i in ids if model[i][1] == 0]
            assert gone == sorted(dead)
            for i in dead:
                del model[i]
        assert store.live_ids().tolist() == sorted(model)
        assert len(store) == len(model)
        ids = random.choices(sorted(model), k=7) if model else []
        assert store.take(np.array(ids, np.int64)).to_pylist() == [value(model[i][0]) for i in ids]
        assert store.weights(np.array(ids, np.int64)).tolist() == [model[i][1] for i in ids]
        rows = store.snapshot([0], 128).to_pylist()
        assert sorted((row["c0"], row["weight"]) for row in rows) == sorted(map(tuple, model.values()))
        frozen = store.freeze(None)
        (piece,) = [rows for *_, rows in frozen.pieces(np.arange(len(frozen)))]
        assert piece.column(0).to_pylist() == [model[i][0] for i in sorted(model)]


def test_append_only_rows_have_no_arrays_until_one_is_removed() -> None:
    store = RowStore(SCHEMA, append_only=True)
    store.append(batch(range(100)))
    store.append(batch(range(100)), np.ones(100, np.int64))
    assert store._positions.size == store._weights.size == 0 and store.capacity >= 200
    store.drop(np.array([7]))
    assert store.freeze(np.arange(5, 9)).ids.tolist() == [5, 6, 8]
    assert store.append(batch([1000, 1001])).tolist() == [7, 200]
    assert store.take(np.array([6, 7, 200, 107])).column(0).to_pylist() == [6, 1000, 1001, 7]


def test_row_store_compacts_and_keeps_ids():
    store = RowStore(SCHEMA)
    ids = np.concatenate([store.append(batch(range(i * 100, i * 100 + 100))) for i in range(50)])
    keep = ids[::7]
    store.add_weights(np.setdiff1d(ids, keep), np.full(ids.size - keep.size, -1))
    assert store.take(keep).column(0).to_pylist() == list(range(0, 5000, 7))
    assert sum(chunk.num_rows for chunk in store._chunks.batches) == keep.size
    assert len(store._chunks) == 1


def test_releases_seldom_copy_the_free_ids():
    store = RowStore(SCHEMA)
    ids = store.append(batch(range(4000)))
    lists = []
    for first in range(0, 1500, 3):
        store.drop(ids[first : first + 3])
        if not lists or lists[-1] is not store._free:
            lists.append(store._free)
    assert 1 < len(lists) <= 12, "a list for each power of two, not for each of 500 releases"
    assert store.append(batch(range(1600))).tolist() == [
        *ids[:1500][::-1].reshape(-1, 3)[:, ::-1].ravel(),
        *range(4000, 4100),
    ]


def test_row_store_rescales_exactly():
    store = RowStore(SCHEMA)
    store.append(batch([*range(300), 5]), np.array([1] * 300 + [4]))
    table = store.snapshot([0], 128)
    groups = table.column("key_group").to_numpy()
    assert (np.diff(groups.astype(int)) >= 0).all()
    assert groups.tolist() == (stable_hash([table.column("c0").combine_chunks()]) % np.uint64(128)).tolist()
    for widths in ([1, 3, 2], [3, 1]):
        tables = [table]
        for parallelism in widths:
            whole = pa.concat_tables(tables)
            tables = []
            for subtask in range(parallelism):
                owned = key_group_range(128, parallelism, subtask)
                kg = whole.column("key_group").to_numpy()
                part, restored = (
                    RowStore(SCHEMA),
                    whole.filter(pa.array((kg >= owned.start) & (kg < owned.end))),
                )
                ids, rows = part.restore(restored)
                assert part.take(ids).equals(rows)
                tables.append(part.snapshot([0], 128))
        rows = sorted((r["c0"], r["weight"]) for r in pa.concat_tables(tables).to_pylist())
        assert rows == sorted([(n, 1) for n in range(300)] + [(5, 4)])


def test_row_store_of_nothing():
    store = RowStore(SCHEMA)
    assert store.take(np.zeros(0, np.int64)).num_rows == 0
    assert store.snapshot([0], 128).num_rows == 0
    assert store.snapshot([], 128).schema.names == ["key_group", "weight", "c0", "c1"]
    assert store.restore(store.snapshot([0], 128))[0].size == 0
