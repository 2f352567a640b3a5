/** Tests when the hold of a VolumeSnapshot ends; decide-restore-claims.test.ts tests when it begins. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { releaseSnapshot } from '#controllers/restore/needed-snapshots.ts';
import { aVolumeSnapshot, NEEDED } from '#controllers/restore/testing/restore-world.ts';

const NEEDED_KEY = 'needed-by-restore.selfsame.io/restore-uid';
const COPY_KEY = 'selfsame.io/only-copy-of';
const HELD = { ...NEEDED, [COPY_KEY]: 'db-root' };

interface Case {
  readonly annotations?: Record<string, string>;
  readonly unfinished?: readonly string[];
  readonly isAwaited?: boolean;
  readonly isOnlyCopy?: boolean;
  /** The annotations that are removed. */
  readonly want: readonly string[];
}

const cases: Record<string, Case> = {
  'a snapshot without marks is not changed': { annotations: {}, want: [] },
  'an unfinished restore keeps its marks': { unfinished: ['restore-uid'], want: [] },
  'a finished restore keeps them while a claim waits for the data': { isAwaited: true, want: [] },
  'then both are removed': { want: [NEEDED_KEY, COPY_KEY] },
  'the mark of an earlier version is removed': { annotations: NEEDED, isOnlyCopy: true, want: [NEEDED_KEY] },
  'without its restore, the only copy of a disk of a protected VM is kept': { isOnlyCopy: true, want: [NEEDED_KEY] },
  'it stays without the mark of the restore': { annotations: { [COPY_KEY]: 'db-root' }, isOnlyCopy: true, want: [] },
  'it is released when no protected VM has the disk': { annotations: { [COPY_KEY]: 'db-root' }, want: [COPY_KEY] },
  'another restore that is not finished keeps it': {
    annotations: { ...HELD, 'needed-by-restore.selfsame.io/other': 'again' },
    unfinished: ['other'],
    want: [NEEDED_KEY],
  },
};

for (const [
  name,
  { annotations = HELD, unfinished = [], isAwaited = false, isOnlyCopy = false, want },
] of Object.entries(cases)) {
  test(name, () => {
    const { metadata, ...rest } = aVolumeSnapshot();
    const snapshot = { ...rest, metadata: { ...metadata, annotations } };
    const { changes } = releaseSnapshot({ snapshot, unfinished: new Set(unfinished), isAwaited, isOnlyCopy });
    const removed = changes.flatMap((change) => {
      const body = change.do === 'patch' ? change.patch.body : {};
      return Object.keys((body as { metadata: { annotations: object } }).metadata.annotations);
    });
    assert.deepEqual(removed, want);
  });
}
