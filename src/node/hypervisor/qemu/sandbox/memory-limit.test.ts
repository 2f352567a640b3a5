import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { describeMemoryKill } from '#node/hypervisor/qemu/sandbox/memory-limit.ts';

const CGROUP = '/selfsame/node-guest';
const KILLED = 'the kernel killed it because its sandbox reached the memory limit of 300 MiB';

async function describeFiles(t: TestContext, files: Readonly<Record<string, string>>): Promise<string | undefined> {
  const root = await mkdtemp(join(tmpdir(), 'selfsame-cgroup-'));
  t.after(() => rm(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(root, dirname(path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return await describeMemoryKill(CGROUP, root);
}

test('reads the counts of cgroup v1', async (t) => {
  const dir = `/sys/fs/cgroup/memory${CGROUP}`;
  const limit = { [`${dir}/memory.limit_in_bytes`]: '314572800\n' };
  const counts = (kills: number) => ({
    [`${dir}/memory.oom_control`]: `oom_kill_disable 0\nunder_oom 0\noom_kill ${kills}\n`,
  });
  assert.equal(await describeFiles(t, { ...limit, ...counts(1) }), KILLED);
  assert.equal(await describeFiles(t, { ...limit, ...counts(0) }), undefined);
});

test('reads the counts of cgroup v2', async (t) => {
  const dir = `/sys/fs/cgroup${CGROUP}`;
  const limit = { [`${dir}/memory.max`]: '314572800\n' };
  const counts = (kills: number) => ({
    [`${dir}/memory.events`]: `low 0\nhigh 0\nmax 7\noom 1\noom_kill ${kills}\noom_group_kill 0\n`,
  });
  assert.equal(await describeFiles(t, { ...limit, ...counts(2) }), KILLED);
  assert.equal(await describeFiles(t, { ...limit, ...counts(0) }), undefined);
});

test('knows nothing without a cgroup', async (t) => {
  assert.equal(await describeFiles(t, {}), undefined);
});
