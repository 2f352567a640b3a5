/** A database file that was changed outside the server: refused with one line, never half-read, never changed. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from '#client/rest-client.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import { ROOT_CA } from '#test/support/kinds.ts';
import { spawnServer, startServer, createTemporaryDir, openTransport } from '#test/support/server-process.ts';

const OBJECTS = 40;
const token = (index: number) => `token-${index}-of-the-damage-test`;

interface Case {
  /** The data directory that is damaged: that of a stopped server, or that of a killed one. */
  readonly of: 'stopped' | 'killed';
  damage(file: string): void;
  /** The part of the error between `Cannot open FILE: ` and the advice. */
  readonly problem: RegExp;
}

/** Changes one byte, `offset` bytes behind the first occurrence of `text`. */
function flipAt(path: string, text: string, offset = 0): void {
  const bytes = readFileSync(path);
  const at = bytes.indexOf(text);
  assert.ok(at >= 0, `${text} is in ${path}`);
  bytes[at + offset]! ^= 0x01;
  writeFileSync(path, bytes);
}

function flipByte(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at]! ^= 0x01;
  writeFileSync(path, bytes);
}

const cases: Record<string, Case> = {
  'one bit in an object': {
    of: 'stopped',
    damage: (file) => flipAt(file, token(20), 3),
    problem: /does not match its checksum/,
  },
  'one bit in the name of an object': {
    of: 'stopped',
    damage: (file) => flipAt(file, 'default/damaged-7', 9),
    problem: /damaged|checksum/,
  },
  'one bit at the start of the file': {
    of: 'stopped',
    damage: (file) => flipByte(file, 3),
    problem: /it is not a database/,
  },
  'one bit in the schema': { of: 'stopped', damage: (file) => flipAt(file, 'CREATE TABLE', 1), problem: /damaged/ },
  'a file cut in half': {
    of: 'stopped',
    damage: (file) => truncateSync(file, Math.floor(readFileSync(file).length / 2)),
    problem: /damaged|ends/,
  },
  'an empty file': { of: 'stopped', damage: (file) => truncateSync(file, 0), problem: /it is empty/ },
  'another file in its place': {
    of: 'stopped',
    damage: (file) => writeFileSync(file, 'not a database, but long enough to be taken for one'.repeat(100)),
    problem: /it is not a database/,
  },
  'one bit in the log of a killed server': {
    of: 'killed',
    damage: (file) => flipAt(`${file}-wal`, token(5), 3),
    problem: /its log .+-wal is damaged/,
  },
};

test('a damaged database file is refused with one clear line and exit code 1', async (t) => {
  const dir = createTemporaryDir(t);
  const dirs = { stopped: join(dir, 'stopped'), killed: join(dir, 'killed') };
  const server = await startServer(t, { dataDir: dirs.stopped });
  const client = createClient(openTransport(t, server.access()));
  for (let index = 0; index < OBJECTS; index++) {
    const metadata = { namespace: 'default', name: `damaged-${index}` };
    await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { token: token(index) } });
  }
  // The copy is what a kill would leave: nothing is being written, and every acknowledged write is on disk.
  cpSync(dirs.stopped, dirs.killed, { recursive: true });
  assert.equal((await server.kill('SIGTERM')).code, 0);
  assert.ok(existsSync(join(dirs.killed, 'store.db-wal')) && !existsSync(join(dirs.stopped, 'store.db-wal')));

  for (const [title, { of, damage, problem }] of Object.entries(cases)) {
    await t.test(title, async () => {
      const dataDir = join(dir, title.replaceAll(' ', '-'));
      cpSync(dirs[of], dataDir, { recursive: true });
      const file = join(dataDir, 'store.db');
      damage(file);
      const damaged = readFileSync(file);
      const { code, stdout, stderr } = await spawnServer(t, { dataDir }).exited;
      assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
      assert.match(stderr, /^error: Cannot open [^\n]+store\.db: [^\n]+; restore it from a backup[^\n]+\n$/);
      assert.match(stderr, problem);
      assert.deepEqual(readFileSync(file), damaged, 'the file is as it was found');
    });
  }

  await t.test('undamaged data directories start with every object', async () => {
    for (const dataDir of Object.values(dirs)) {
      const whole = await startServer(t, { dataDir });
      const { items } = await createClient(openTransport(t, whole.access())).list(CONFIG_MAPS, {
        namespace: 'default',
      });
      assert.equal(items.filter(({ metadata }) => metadata.name !== ROOT_CA).length, OBJECTS);
      assert.equal((await whole.kill('SIGTERM')).code, 0);
    }
  });
});
