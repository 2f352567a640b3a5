/** Answers of guest agents, which a guest chooses freely: through the connection, and as values of KubeVirt's API. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { duplexPair, type Duplex } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import * as answers from '#node/guest-agent/agent-answers.ts';
import { GuestAgentError } from '#node/hypervisor/guest-access.ts';
import { AgentConnection } from '#node/hypervisor/qemu/guest-io/agent-connection.ts';
import { checkInputs, expectedError } from '#test/fuzz/check-inputs.ts';
import { byteMutations, chunkSizes, chunksOf, type Mutation } from '#test/fuzz/mutations.ts';

const HOUR_MS = 3_600_000;
const MAX_REPORT_BYTES = 1024 * 1024;
const unchanged: Mutation = (bytes) => bytes;

const KEYS = ['name', 'ip-addresses', 'ip-address', 'hardware-address', 'user', 'login-time', 'disk', 'mountpoint'];
const MORE_KEYS = [
  'used-bytes',
  'version',
  'supported_commands',
  'offset',
  'zone',
  'host-name',
  '__proto__',
  'toString',
];
const leaf = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    -1,
    1e308,
    '',
    'lo',
    '10.0.0.1',
    'fe80::1',
    '::ffff:1.2.3.4',
    '\ud800',
    'x'.repeat(5000),
  ),
  fc.string(),
  fc.double({ noNaN: true }),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, leaf, tie('list'), tie('record')),
  list: fc.array(tie('value'), { maxLength: 8 }),
  record: fc.dictionary(fc.constantFrom(...KEYS, ...MORE_KEYS), tie('value'), { maxKeys: 6 }),
}));
const wide = fc
  .tuple(leaf, fc.integer({ min: 1, max: 3000 }))
  .map(([item, count]) =>
    Array.from({ length: count }, () => ({ name: item, 'ip-addresses': [{ 'ip-address': item }] })),
  );
const answer = fc.oneof(value, wide, fc.array(value, { maxLength: 300 }));

test('no answer of a guest agent yields an invalid or large value', (t) =>
  checkInputs(t, { runs: 1500, values: answer }, async (found) => {
    const interfaces = answers.readInterfaces(found);
    const report = {
      os: answers.readOsInfo(found),
      interfaces: answers.mergeInterfaces([{ mac: '02:00:00:00:00:01' }], interfaces),
      users: answers.readUsers(found),
      disks: answers.readFileSystems(found),
      version: answers.readVersion(found),
      hostname: answers.readHostName(found),
      timezone: answers.readTimezone(found),
    };
    const text = JSON.stringify(report);
    assert.ok(text.length < MAX_REPORT_BYTES, `the report has ${text.length} characters`);
    assert.ok(!/:(?:NaN|Infinity)/.test(text));
  }));

const line = fc.oneof(
  answer.map((result) => JSON.stringify({ return: result })),
  fc.tuple(answer, answer).map(([kind, desc]) => JSON.stringify({ error: { class: kind, desc } })),
  fc.integer({ min: 1, max: 20_000 }).map((depth) => `{"return":${'['.repeat(depth)}${']'.repeat(depth)}}`),
  fc.string(),
);

test('no answer of a guest agent crashes its connection, keeps a command waiting or blocks the event loop', (t) =>
  checkInputs(
    t,
    {
      runs: 300,
      values: fc.tuple(
        fc.array(line, { minLength: 1, maxLength: 5 }).map((lines) => Buffer.from(`${lines.join('\n')}\n`)),
        fc.oneof(fc.constant(unchanged), byteMutations),
        chunkSizes,
        fc.boolean(),
      ),
      always: [
        [Buffer.from(`{"return":${'['.repeat(500_000)}${']'.repeat(500_000)}}\n`), unchanged, 65_536, true],
        [Buffer.alloc(2 * 1024 * 1024, '\n'), unchanged, 65_536, true],
        [Buffer.alloc(2 * 1024 * 1024, 'x'), unchanged, 65_536, false],
      ],
    },
    async ([valid, mutate, chunkSize, doesSync]) => {
      const clock = new FakeClock();
      let guest: Duplex | undefined;
      const connect = async () => {
        const [ours, theirs] = duplexPair();
        guest = theirs;
        theirs.on('error', () => {});
        theirs.on('data', (bytes: Buffer) => {
          const sync = /"guest-sync-delimited".*?"id":(\d+)/.exec(bytes.toString('latin1'));
          if (doesSync && sync !== null) theirs.write(`\xff{"return":${sync[1]}}\n`, 'latin1');
        });
        return ours as unknown as Socket;
      };
      const connection = new AgentConnection({ deviceId: 'agent0', connect, clock, onChange: () => {} });
      connection.setOpen(true);
      let settled = 0;
      const ends = ['guest-get-users', 'guest-get-fsinfo'].map((execute) =>
        expectedError([GuestAgentError], () => connection.ask({ execute })).finally(() => {
          settled++;
        }),
      );
      await settle();
      for (const chunk of chunksOf(mutate(valid), chunkSize)) {
        if (guest?.destroyed === false) guest.write(chunk);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await clock.advance(HOUR_MS);
      await settle();
      assert.equal(settled, ends.length, 'every command settles');
      await Promise.all(ends);
      connection.close();
    },
  ));
