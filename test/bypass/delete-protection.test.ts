/**
 * Ways around delete protection. One protected VM that runs on a disk stands through all of them: after each it is the
 * selfsame one, with what is on its disk, and still as protected as before. What may end it is a decision of its own.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { guards, life, marks, moreMarks, neededByIt } from '#test/bypass/of-needed.ts';
import { record } from '#test/bypass/of-record.ts';
import { garbage, people, verbs, writes } from '#test/bypass/of-vm.ts';
import { A_WHILE_MS, ours, VM, Scene, type Row, namespace, records } from '#test/bypass/scene.ts';
import {
  CRD,
  LABEL,
  RECORD_CRD,
  json,
  labelled,
  makeNamespace,
  makeProtected,
  placesOf,
  told,
} from '#test/support/protection.ts';
import type { Answer, Loose } from '#test/support/test-api.ts';
import { startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const LABEL_PATH = `/metadata/labels/${LABEL.replace('/', '~1')}`;
/** Whatever is refused says which VM it is about. */
const NAMES_IT = /^4\d\d .*(VirtualMachine db cannot be deleted|the protected VirtualMachine (shop\/)?db;)/;

const tables: Record<string, Record<string, Row>> = {
  'ways to delete it': verbs,
  'ways to write it': writes,
  'people who are not anybody': people,
  'the garbage collector': garbage,
  'what it needs': neededByIt,
  'the marks on what it needs': { ...marks, ...moreMarks },
  'what protects it': guards,
  'its life': life,
  'its identity record': record,
};

test('there are enough of them', () => {
  const rows = Object.values(tables).flatMap((table) => Object.keys(table));
  assert.ok(rows.length >= 40);
  assert.equal(new Set(rows).size, rows.length, 'each once');
});

for (const [about, table] of Object.entries(tables)) test(`ways around: ${about}`, (t) => standsThrough(t, table));

async function standsThrough(t: TestContext, table: Readonly<Record<string, Row>>): Promise<void> {
  const scene = new Scene(await startVmPlane(t));
  const { plane } = scene;
  await makeNamespace(plane, 'shop');
  await makeProtected(plane, 'shop', 'db');
  const before = await scene.look();
  assert.deepEqual([before.label, before.disk, before.leaving], ['true', 'precious', []]);

  for (const [sentence, { attempt, want, why, says, tidy }] of Object.entries(table)) {
    await t.test(`${sentence}: ${want}, because ${why}`, async () => {
      const answer = told(await attempt(scene));
      assert.match(answer, want === 'harmless' ? /^2/ : (says ?? NAMES_IT));
      await plane.advance(want === 'refused' ? 1 : A_WHILE_MS);
      assert.deepEqual(await scene.look(), before);
      await tidy?.(scene);
      if (tidy !== undefined) await plane.advance(A_WHILE_MS);
      for (const url of [VM, namespace, scene.claim, scene.volume, CRD, `${records}/db`, RECORD_CRD]) {
        const again = told(await scene.call('DELETE', `${url}?dryRun=All`));
        assert.match(again, /^4\d\d .*(cannot be deleted|protected VirtualMachine)/, `it is still protected: ${url}`);
      }
    });
  }
}

interface Decision {
  readonly attempt: (plane: VmPlane, at: ReturnType<typeof placesOf>) => Promise<Answer>;
  /** What is gone then. */
  readonly gone: 'vms' | 'claims';
  readonly why: string;
}

const decisions: Record<string, Decision> = {
  'the label is removed and the VM deleted in one batch': {
    attempt: async (plane, at) => {
      const removed = await plane.call('PATCH', `${at.vms}/own`, json({ op: 'remove', path: LABEL_PATH }));
      assert.equal(removed.status, 200);
      return await plane.call('DELETE', `${at.vms}/own`);
    },
    gone: 'vms',
    why: 'removing the label is the decision; who did it stays in an Event',
  },
  'the VM is replaced by a manifest without the label, and deleted': {
    attempt: async (plane, at) => {
      const vm = await plane.server.api.ok('GET', `${at.vms}/own`);
      delete vm.metadata.labels;
      await plane.server.api.ok('PUT', `${at.vms}/own`, { body: vm });
      return await plane.call('DELETE', `${at.vms}/own`);
    },
    gone: 'vms',
    why: 'a replace writes labels, as everything else',
  },
  'the label says TRUE': {
    attempt: async (plane, at) => {
      const answer = await plane.call('PATCH', `${at.vms}/own`, { body: labelled('TRUE') });
      assert.equal(answer.warnings.length, 1, 'but that is told');
      return await plane.call('DELETE', `${at.vms}/own`);
    },
    gone: 'vms',
    why: 'the values are those of upstream',
  },
  'its disk is taken out of its template, and deleted': {
    attempt: async (plane, at) => {
      const spec = {
        template: { spec: { domain: { devices: { disks: null } }, volumes: null } },
        runStrategy: 'Halted',
      };
      await plane.server.api.ok('PATCH', `${at.vms}/own`, { body: { spec } });
      await plane.settle();
      return await plane.call('DELETE', `${at.claims}/own`);
    },
    gone: 'claims',
    why: 'what it does not name any more is no disk of it; the VM itself stays',
  },
  'its claim is deleted by who is allowed to act as the restore controller': {
    attempt: async (plane, at) => {
      await plane.server.api.ok('PATCH', `${at.vms}/own`, { body: { spec: { runStrategy: 'Halted' } } });
      await plane.settle();
      return await plane.call('DELETE', `${at.claims}/own`, ours('restore-controller'));
    },
    gone: 'claims',
    why: 'restores in place go on; to impersonate our accounts takes a cluster administrator',
  },
};

test('decisions', async (t) => {
  const plane = await startVmPlane(t);
  for (const [index, [sentence, { attempt, gone, why }]] of Object.entries(decisions).entries()) {
    await t.test(`${sentence}: allowed, because ${why}`, async () => {
      const at = placesOf(`decision-${index}`);
      await makeNamespace(plane, `decision-${index}`);
      await makeProtected(plane, `decision-${index}`, 'own');
      const refusal = told(await plane.call('DELETE', `${at[gone]}/own`));
      assert.match(refusal, /^4\d\d .*cannot be deleted/, 'it was protected');
      assert.equal((await attempt(plane, at)).status, 200);
      await plane.advance(A_WHILE_MS);
      assert.equal((await plane.call('GET', `${at[gone]}/own`)).status, 404);
      assert.equal((await plane.call('GET', `${at.vms}/own`)).status, gone === 'vms' ? 404 : 200);
      const { items } = await plane.server.api.ok('GET', `${at.namespace}/events`);
      const ended = items.filter(({ reason }: Loose) => reason === 'DeleteProtectionDisabled');
      assert.equal(ended.length, gone === 'vms' ? 1 : 0, 'whoever ends it is told of');
    });
  }
});
