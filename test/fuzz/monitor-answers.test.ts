/** Answers and events of a QEMU that a guest controls, on the way through the QMP client to its users. */
import assert from 'node:assert/strict';
import { duplexPair } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { GuestWatchdog } from '#node/hypervisor/qemu/guest-io/guest-watchdog.ts';
import { QmpClient, QmpError } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { checkInputs, expectedError } from '#test/fuzz/check-inputs.ts';
import { chunkSizes, chunksOf, byteMutations, type Mutation } from '#test/fuzz/mutations.ts';

const HOUR_MS = 3_600_000;
/** The first id after that of qmp_capabilities. */
const FIRST_ID = 2;
const COMMANDS = ['query-status', 'query-block', 'qom-list'];
const GREETING = '{"QMP":{"version":{"qemu":{"major":7}},"capabilities":[]}}\n';

const nested = fc.integer({ min: 1, max: 20_000 }).map((depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`);
const odd = fc.constantFrom(
  'null',
  '1e999',
  '{"toString":1,"valueOf":1}',
  '{"__proto__":{"a":1}}',
  '"\\ud800"',
  '[]',
  '""',
);
const value = fc.oneof(fc.json({ maxDepth: 4 }), odd, nested);
const id = fc.oneof(fc.integer({ min: 1, max: 5 }).map(String), odd);
const line = fc.oneof(
  fc.tuple(value, id).map(([result, of]) => `{"return":${result},"id":${of}}`),
  fc.tuple(value, value, id).map(([kind, desc, of]) => `{"error":{"class":${kind},"desc":${desc}},"id":${of}}`),
  fc
    .tuple(fc.constantFrom('STOP', 'WATCHDOG', 'DEVICE_DELETED'), value)
    .map(([name, action]) => `{"event":"${name}","data":{"action":${action},"id":${action},"device":${action}}}`),
  fc.tuple(value).map(([event]) => `{"event":${event},"data":null,"timestamp":{}}`),
  value,
);
const stream = fc.array(line, { minLength: 1, maxLength: 12 }).map((lines) => Buffer.from(`${lines.join('\r\n')}\r\n`));
const unchanged: Mutation = (bytes) => bytes;

test('no answer of QEMU crashes its client, keeps a command waiting or blocks the event loop', (t) =>
  checkInputs(
    t,
    {
      runs: 400,
      values: fc.tuple(stream, fc.oneof(fc.constant(unchanged), byteMutations), chunkSizes),
      always: [
        [
          Buffer.from(`{"return":${'['.repeat(2_000_000)}${']'.repeat(2_000_000)},"id":${FIRST_ID}}\n`),
          unchanged,
          65_536,
        ],
        [Buffer.alloc(5 * 1024 * 1024, '['), unchanged, 65_536],
        [Buffer.alloc(1024 * 1024, '\n'), unchanged, 65_536],
        [Buffer.from('{"event":"STOP"}\n'.repeat(50_000)), unchanged, 65_536],
      ],
    },
    async ([valid, mutate, chunkSize]) => {
      const clock = new FakeClock();
      const [ours, qemu] = duplexPair();
      qemu.on('error', () => {});
      qemu.resume();
      const watchdog = new GuestWatchdog(() => {});
      const opening = QmpClient.open(ours, { clock, onEvent: (event) => watchdog.onEvent(event) });
      qemu.write(GREETING);
      await settle();
      qemu.write('{"return":{},"id":1}\n');
      const client = await opening;
      const answers = COMMANDS.map((command) => client.execute(command));
      let settled = 0;
      const ends = answers.map((answer) =>
        expectedError([QmpError], () => answer).finally(() => {
          settled++;
        }),
      );
      for (const chunk of chunksOf(mutate(valid), chunkSize)) {
        qemu.write(chunk);
        // One chunk per turn, as from a socket.
        await new Promise((resolve) => setImmediate(resolve));
      }
      await clock.advance(HOUR_MS);
      await settle();
      assert.equal(settled, COMMANDS.length, 'every command settles');
      await Promise.all(ends);
      client.close();
      qemu.destroy();
      assert.equal(typeof (watchdog.view.watchdog?.action ?? ''), 'string');
    },
  ));
