import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandError } from '#cli/flags.ts';
import type { LocalImage } from '#cli/image/local-image.ts';
import { uploadImage } from '#cli/image/upload-image.ts';
import { ApiError, conflict, notFound, timeout } from '#kube/api-error.ts';

const CLAIMS = { group: '', plural: 'persistentvolumeclaims' };
const image: LocalImage = {
  path: 'a.raw',
  format: 'raw',
  size: 3,
  virtualSize: 3,
  async *chunks() {
    yield Buffer.from('abc');
  },
};

/** A server that answers every try with the next of these; the last one again and again. */
async function tried(...faults: readonly Error[]) {
  let [tries, now] = [0, 0];
  const said: string[] = [];
  const api = {
    namespace: 'lab',
    async openWebSocket() {
      throw faults[Math.min(tries++, faults.length - 1)]!;
    },
  };
  const clock = {
    now: () => now,
    elapsed: () => now,
    after(ms: number, act: () => void) {
      now += ms;
      queueMicrotask(act);
      return () => {};
    },
  };
  const options = { clock, report: (line: string) => void said.push(line), readyMs: 60_000, replace: false };
  const error = await uploadImage(api, 'disk', image, options).catch((fault: unknown) => fault as Error);
  assert.ok(error instanceof Error);
  return { error, tries, said, now };
}

const away = new CommandError('Unable to connect to the server: connect ECONNREFUSED');

test('a server that stays away is given up, with what to do next', async () => {
  const { error, tries, said, now } = await tried(away);
  assert.equal(error.name, 'UploadBroken');
  assert.match(error.message, /^the upload was interrupted: Unable to connect/);
  assert.equal(tries, 6);
  assert.equal(said.length, 5);
  assert.ok(now > 5000 && now < 60_000, 'each wait is longer, all of them bounded');
});

const final: Record<string, ApiError> = {
  'a claim that is in use': conflict(CLAIMS, 'disk', 'it is in use by VirtualMachineInstance "db"'),
  'a claim that is gone': notFound(CLAIMS, 'disk'),
  'a claim that somebody else fills': conflict(CLAIMS, 'disk', 'PersistentVolume "pv" is being exported or imported'),
  'somebody who may not': new ApiError(403, 'Forbidden', 'may not'),
};
for (const [title, fault] of Object.entries(final)) {
  test(`${title} is told at once`, async () => {
    const { error, tries } = await tried(fault);
    assert.equal(error, fault);
    assert.equal(tries, 1);
  });
}

test('a claim that is not ready is waited for, as long as was said', async () => {
  const { error, tries, now } = await tried(timeout('persistentvolumeclaim "disk" is still not bound to a volume'));
  assert.equal(error.name, 'UploadBroken');
  assert.ok(tries > 6);
  assert.ok(now >= 60_000);
});
