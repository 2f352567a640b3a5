import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandError } from '#lib/command-line/command-error.ts';
import type { LocalImage } from '#cli/commands/image-upload/local-image.ts';
import { uploadImage } from '#cli/commands/image-upload/upload-image.ts';
import { ApiError, conflict, notFound, timeout } from '#kube/api-error.ts';
import { StatusOutput } from '#lib/terminal/status-output.ts';

const CLAIMS = { group: '', plural: 'persistentvolumeclaims' };
const image: LocalImage = {
  path: 'a.raw',
  format: 'raw',
  size: 3,
  virtualSize: 3,
  dataBytes: 3,
  async *chunks() {
    yield Buffer.from('abc');
  },
};

/** Uploads to a server that fails each attempt with the next of these errors, and then always with the last one. */
async function attempt(...errors: readonly Error[]) {
  let [attempts, now] = [0, 0];
  const reported: string[] = [];
  const api = {
    namespace: 'lab',
    async openWebSocket() {
      throw errors[Math.min(attempts++, errors.length - 1)]!;
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
  const stream = { write: (line: string) => void reported.push(line) };
  const options = { status: new StatusOutput(stream, { clock, env: {} }), readyMs: 60_000, replace: false };
  const error = await uploadImage(api, 'disk', image, options).catch((failure: unknown) => failure as Error);
  assert.ok(error instanceof Error);
  return { error, attempts, reported, now };
}

const unreachable = new CommandError('Unable to connect to the server: connect ECONNREFUSED');

test('gives up if the server stays unreachable, with a hint', async () => {
  const { error, attempts, reported, now } = await attempt(unreachable);
  assert.equal(error.name, 'UploadInterruptedError');
  assert.match(error.message, /^the upload was interrupted: Unable to connect/);
  assert.equal(attempts, 6);
  assert.equal(reported.length, 5);
  assert.ok(now > 5000 && now < 60_000, 'delays increase up to a maximum');
});

const final: Record<string, ApiError> = {
  'a claim that is in use': conflict(CLAIMS, 'disk', 'it is in use by VirtualMachineInstance "db"'),
  'a claim that does not exist': notFound(CLAIMS, 'disk'),
  'a claim with another upload': conflict(CLAIMS, 'disk', 'PersistentVolume "pv" is being exported or imported'),
  'a missing permission': new ApiError(403, 'Forbidden', 'may not'),
};
for (const [title, failure] of Object.entries(final)) {
  test(`${title} is reported at once`, async () => {
    const { error, attempts } = await attempt(failure);
    assert.equal(error, failure);
    assert.equal(attempts, 1);
  });
}

test('waits for a claim that is not ready, up to the given time', async () => {
  const { error, attempts, now } = await attempt(
    timeout('persistentvolumeclaim "disk" is still not bound to a volume'),
  );
  assert.equal(error.name, 'UploadInterruptedError');
  assert.ok(attempts > 6);
  assert.ok(now >= 60_000 && now < 80_000, 'the time for a claim is not followed by attempts to reconnect');
});
