/**
 * Attempts to get around delete protection. One protected VM runs on a disk through all of them: after each attempt it
 * is the same VM, its disk has the same content, and it is still protected. Users who end the protection on purpose are
 * in the table `decisions`.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { guards, life, marks, moreMarks, dependencies } from '#test/bypass/dependency-attempts.ts';
import { record } from '#test/bypass/record-attempts.ts';
import { garbage, clients, verbs, writes } from '#test/bypass/vm-attempts.ts';
import { A_WHILE_MS, ours, VM, Scene, type Row, namespace, records } from '#test/bypass/scene.ts';
import {
  CRD,
  LABEL,
  RECORD_CRD,
  jsonPatch,
  labelPatch,
  createNamespace,
  createProtectedVm,
  urlsOf,
  renderResponse,
} from '#test/support/protection.ts';
import type { TestResponse, Loose } from '#test/support/test-api.ts';
import { startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const LABEL_PATH = `/metadata/labels/${LABEL.replace('/', '~1')}`;
/** Every refusal names the protected VM. */
const NAMES_THE_VM = /^4\d\d .*(VirtualMachine db cannot be deleted|the protected VirtualMachine (shop\/)?db;)/;

const tables: Record<string, Record<string, Row>> = {
  'delete requests': verbs,
  'writes to the VM': writes,
  'privileged users and service accounts': clients,
  'the garbage collector': garbage,
  'objects that the VM needs': dependencies,
  'the marks on objects that the VM needs': { ...marks, ...moreMarks },
  'the policies and controllers that protect it': guards,
  'the instance, its pod and its snapshots': life,
  'the identity record': record,
};

test('the tables have at least 40 rows, each with its own name', () => {
  const rows = Object.values(tables).flatMap((table) => Object.keys(table));
  assert.ok(rows.length >= 40);
  assert.equal(new Set(rows).size, rows.length, 'each name is used once');
});

for (const [about, table] of Object.entries(tables))
  test(`cannot be bypassed: ${about}`, (t) => checkAttempts(t, table));

async function checkAttempts(t: TestContext, table: Readonly<Record<string, Row>>): Promise<void> {
  const scene = new Scene(await startVmPlane(t));
  const { plane } = scene;
  await createNamespace(plane, 'shop');
  await createProtectedVm(plane, 'shop', 'db');
  const before = await scene.readVm();
  assert.deepEqual([before.label, before.disk, before.leaving], ['true', 'precious', []]);

  for (const [sentence, { attempt, want, why, refusal, cleanUp }] of Object.entries(table)) {
    await t.test(`${sentence}: ${want}, because ${why}`, async () => {
      const answer = renderResponse(await attempt(scene));
      assert.match(answer, want === 'harmless' ? /^2/ : (refusal ?? NAMES_THE_VM));
      await plane.advance(want === 'refused' ? 1 : A_WHILE_MS);
      assert.deepEqual(await scene.readVm(), before);
      await cleanUp?.(scene);
      if (cleanUp !== undefined) await plane.advance(A_WHILE_MS);
      for (const url of [VM, namespace, scene.claim, scene.volume, CRD, `${records}/db`, RECORD_CRD]) {
        const again = renderResponse(await scene.call('DELETE', `${url}?dryRun=All`));
        assert.match(again, /^4\d\d .*(cannot be deleted|protected VirtualMachine)/, `still protected: ${url}`);
      }
    });
  }
}

interface Decision {
  readonly attempt: (plane: VmPlane, at: ReturnType<typeof urlsOf>) => Promise<TestResponse>;
  /** The kind of object that is deleted in the end. */
  readonly gone: 'vms' | 'claims';
  readonly why: string;
}

const decisions: Record<string, Decision> = {
  'the label is removed and the VM deleted in one batch': {
    attempt: async (plane, at) => {
      const removed = await plane.call('PATCH', `${at.vms}/own`, jsonPatch({ op: 'remove', path: LABEL_PATH }));
      assert.equal(removed.status, 200);
      return await plane.call('DELETE', `${at.vms}/own`);
    },
    gone: 'vms',
    why: 'removing the label is the decision; an Event names the user',
  },
  'the VM is replaced by a manifest without the label, and then deleted': {
    attempt: async (plane, at) => {
      const vm = await plane.server.api.ok('GET', `${at.vms}/own`);
      delete vm.metadata.labels;
      await plane.server.api.ok('PUT', `${at.vms}/own`, { body: vm });
      return await plane.call('DELETE', `${at.vms}/own`);
    },
    gone: 'vms',
    why: 'a replace writes the whole object, labels included',
  },
  'the label is set to TRUE': {
    attempt: async (plane, at) => {
      const answer = await plane.call('PATCH', `${at.vms}/own`, { body: labelPatch('TRUE') });
      assert.equal(answer.warnings.length, 1, 'a Warning is returned');
      return await plane.call('DELETE', `${at.vms}/own`);
    },
    gone: 'vms',
    why: 'only the values of the design document protect',
  },
  'its disk is removed from its template, released, and the claim is deleted': {
    attempt: async (plane, at) => {
      const spec = {
        template: { spec: { domain: { devices: { disks: null } }, volumes: null } },
        runStrategy: 'Halted',
      };
      await plane.server.api.ok('PATCH', `${at.vms}/own`, { body: { spec } });
      await plane.settle();
      const kept = renderResponse(await plane.call('DELETE', `${at.claims}/own`));
      assert.match(kept, /^403 .*it is a disk of the protected VirtualMachine own;/, 'it is still protected');
      const verb = at.vms.replace('/kubevirt.io/', '/subresources.kubevirt.io/');
      await plane.server.api.ok('PUT', `${verb}/own/releasedisk`, { body: { claimName: 'own' } });
      await plane.settle();
      return await plane.call('DELETE', `${at.claims}/own`);
    },
    gone: 'claims',
    why: 'the user detached the disk and released it by name; the VM itself is kept',
  },
  'its claim is marked as replaced and deleted by a user who impersonates the restore controller': {
    attempt: async (plane, at) => {
      await plane.server.api.ok('PATCH', `${at.vms}/own`, { body: { spec: { runStrategy: 'Halted' } } });
      await plane.settle();
      const body = { metadata: { annotations: { 'selfsame.io/replaced-by': 'x' } } };
      await plane.server.api.ok('PATCH', `${at.claims}/own`, { body, ...ours('restore-controller') });
      return await plane.call('DELETE', `${at.claims}/own`, ours('restore-controller'));
    },
    gone: 'claims',
    why: 'restores in place delete claims; only a cluster administrator can impersonate our accounts',
  },
};

test('a user can end the protection on purpose', async (t) => {
  const plane = await startVmPlane(t);
  for (const [index, [sentence, { attempt, gone, why }]] of Object.entries(decisions).entries()) {
    await t.test(`${sentence}: allowed, because ${why}`, async () => {
      const at = urlsOf(`decision-${index}`);
      await createNamespace(plane, `decision-${index}`);
      await createProtectedVm(plane, `decision-${index}`, 'own');
      const refusedText = renderResponse(await plane.call('DELETE', `${at[gone]}/own`));
      assert.match(refusedText, /^4\d\d .*cannot be deleted/, 'it was protected');
      assert.equal((await attempt(plane, at)).status, 200);
      await plane.advance(A_WHILE_MS);
      assert.equal((await plane.call('GET', `${at[gone]}/own`)).status, 404);
      assert.equal((await plane.call('GET', `${at.vms}/own`)).status, gone === 'vms' ? 404 : 200);
      const { items } = await plane.server.api.ok('GET', `${at.namespace}/events`);
      const ended = items.filter(({ reason }: Loose) => reason === 'DeleteProtectionDisabled');
      assert.equal(ended.length, gone === 'vms' ? 1 : 0, 'an Event names the user who ended the protection');
    });
  }
});
