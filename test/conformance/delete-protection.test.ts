/**
 * Delete protection as users see it: with a real kubectl, on any cluster with Selfsame.
 *
 *   SELFSAME_CONFORMANCE_KUBECONFIG=FILE   the cluster; without it, the test starts the program itself, without nodes
 *
 * No VM is started. Everything happens in a new namespace, which is removed at the end, even after a failure.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { newUid } from '#lib/ids.ts';
import { findNewKubectl, findOldKubectl } from '#test/support/kubectl.ts';
import { haltedVm, KubectlShell } from '#test/support/kubectl-shell.ts';
import type { Plane } from '#test/support/plane.ts';
import { startSimulatedPlane } from '#test/support/simulated-plane.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const POLICY = 'kubevirt-vm-deletion-protection';

const refusal = (vm: string) =>
  `VirtualMachine ${vm} cannot be deleted, disable/remove label '${LABEL}' from VirtualMachine before deleting it`;

const found = [findNewKubectl(), findOldKubectl()].find((one) => 'path' in one);
const skip = found === undefined ? 'there is no kubectl; scripts/setup.sh --for test brings one' : false;
const namespace = `selfsame-conformance-${newUid().slice(0, 8)}`;
let plane: Plane | undefined;
let shell: KubectlShell;

before(async () => {
  if (found === undefined || !('path' in found)) return;
  const given = process.env['SELFSAME_CONFORMANCE_KUBECONFIG'] ?? '';
  if (given === '') plane = await startSimulatedPlane({ nodes: 0 });
  const kubeconfig = plane?.kubeconfigPath ?? given;
  shell = await KubectlShell.open({ kubectl: found.path, kubeconfig, namespace });
  await shell.ok(`kubectl create namespace ${namespace}`);
});

after(async () => {
  try {
    // A failed test may have left protected VMs.
    await shell?.run(`kubectl label vm --all ${LABEL}-`);
    await shell?.run(`kubectl delete namespace ${namespace} --wait=${plane === undefined}`);
  } finally {
    await shell?.close();
    await plane?.stop();
  }
});

function testConformance(sentence: string, prove: () => Promise<void>): void {
  void test(`[conformance] ${sentence}`, { skip }, prove);
}

let count = 0;
async function aVm(labels: Readonly<Record<string, string>> = {}, claim?: string): Promise<string> {
  const name = `vm-${++count}`;
  await shell.ok('kubectl create -f -', JSON.stringify(haltedVm(name, labels, claim)));
  return name;
}

async function assertRefused(command: string, words: string): Promise<void> {
  const { exit, text } = await shell.run(command);
  assert.ok(text.includes(words), `${command} printed: ${text}`);
  assert.equal(exit, 1);
}

async function assertKept(vm: string, command = `kubectl delete vm ${vm}`): Promise<void> {
  const uid = await shell.ok(`kubectl get vm ${vm} -o jsonpath='{.metadata.uid}'`);
  await assertRefused(command, refusal(vm));
  const left = await shell.ok(`kubectl get vm ${vm} -o jsonpath='{.metadata.uid}{.metadata.deletionTimestamp}'`);
  assert.equal(left, uid);
}

async function assertDeleted(vm: string): Promise<void> {
  await shell.ok(`kubectl delete vm ${vm}`);
  assert.match((await shell.run(`kubectl get vm ${vm}`)).text, /NotFound/);
}

/** Repeats the command until its output has the words; the time limit of the command applies. */
const waitForOutput = (command: string, words: string) =>
  shell.ok(`until ${command} 2>&1 | grep -q -- ${JSON.stringify(words)}; do :; done`);

for (const value of ['true', 'True']) {
  testConformance(`a VM with the label ${value} is not deleted`, async () => assertKept(await aVm({ [LABEL]: value })));
}

for (const value of ['False', 'false', 'niceValue', 'TRUE', '']) {
  testConformance(`a VM with the label "${value}" is deleted`, async () =>
    assertDeleted(await aVm({ [LABEL]: value })),
  );
}

testConformance('a VM with other labels is deleted', async () => assertDeleted(await aVm({ app: 'db' })));
testConformance('a VM without labels is deleted', async () => assertDeleted(await aVm()));

testConformance('kubectl label protects a VM against every kind of delete', async () => {
  const vm = await aVm();
  await shell.ok(`kubectl label vm ${vm} ${LABEL}=true`);
  for (const flags of ['--force --grace-period=0', '--cascade=orphan', '--now', '--dry-run=server', '--wait=false']) {
    if (flags === '--cascade=orphan' && (await isOld())) continue;
    await assertKept(vm, `kubectl delete vm ${vm} ${flags}`);
  }
  await assertKept(vm, `kubectl delete --raw /apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines/${vm}`);
  await assertKept(vm, `kubectl delete vm -l ${LABEL}=true --field-selector metadata.name=${vm}`);
});

const isOld = async () => (await shell.ok('kubectl version --client')).includes('"20"');

testConformance('a VM whose label was removed with the patch of the design document is deleted', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  await assertKept(vm);
  await shell.ok(
    `kubectl patch vm ${vm} --type=json -p='[{"op": "remove", "path": "/metadata/labels/kubevirt.io~1vm-delete-protection"}]'`,
  );
  await assertDeleted(vm);
});

testConformance('a VM whose label was replaced with the patch of the design document is deleted', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  await assertKept(vm);
  await shell.ok(
    `kubectl patch vm ${vm} --type=json -p='[{"op": "replace", "path": "/metadata/labels/kubevirt.io~1vm-delete-protection", "value": "false"}]'`,
  );
  await assertDeleted(vm);
});

testConformance('a value that was probably intended to protect draws a Warning', async () => {
  const vm = await aVm();
  const { text } = await shell.run(`kubectl label vm ${vm} ${LABEL}=TRUE`);
  assert.match(text, /Warning: .*"TRUE" does not protect the VirtualMachine; only "true" and "True" do/);
  await assertDeleted(vm);
});

testConformance('administrators and service accounts are refused as well', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  const accounts = ['kubernetes-admin', 'system:serviceaccount:selfsame-system:vm-controller'];
  for (const account of [...accounts, 'system:serviceaccount:kube-system:generic-garbage-collector']) {
    await assertKept(vm, `kubectl delete vm ${vm} --as=${account} --as-group=system:masters`);
  }
});

testConformance('delete --all deletes unprotected VMs and keeps protected ones', async () => {
  await shell.run(`kubectl label vm --all ${LABEL}-`);
  await shell.run('kubectl delete vm --all');
  const [first, kept, last] = [await aVm(), await aVm({ [LABEL]: 'true' }), await aVm()];
  const { exit, text } = await shell.run('kubectl delete vm --all');
  assert.equal(exit, 1);
  assert.ok(text.includes(refusal(kept)), text);
  for (const vm of [first, last]) assert.match(text, new RegExp(`"${vm}" deleted`));
  assert.equal(await shell.ok(`kubectl get vm -o jsonpath='{.items[*].metadata.name}'`), kept);
});

testConformance('the namespace of a protected VM is not deleted, and the refusal names the VM', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  await assertRefused(
    `kubectl delete namespace ${namespace}`,
    'cannot be deleted: it holds the protected VirtualMachine',
  );
  assert.equal(await shell.ok(`kubectl get namespace ${namespace} -o jsonpath='{.status.phase}'`), 'Active');
  await assertKept(vm);
});

testConformance('the CRD of VMs is not deleted while there is a protected VM', async () => {
  await aVm({ [LABEL]: 'true' });
  await assertRefused(
    'kubectl delete crd virtualmachines.kubevirt.io --dry-run=server',
    'cannot be deleted: it defines the protected VirtualMachine',
  );
});

testConformance('the claim of a protected VM is not deleted; after the label was removed, it is', async () => {
  const claim = `data-${count}`;
  const resources = { requests: { storage: '64Mi' } };
  const spec = { accessModes: ['ReadWriteOnce'], resources };
  const object = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: claim }, spec };
  await shell.ok('kubectl create -f -', JSON.stringify(object));
  const vm = await aVm({ [LABEL]: 'true' }, claim);
  await assertRefused(`kubectl delete pvc ${claim}`, `it is a disk of the protected VirtualMachine ${vm};`);
  await waitForOutput(`kubectl get pvc ${claim} -o yaml`, `selfsame.io/protected-vms: ${vm}`);
  await assertRefused(
    `kubectl annotate pvc ${claim} selfsame.io/protected-vms-`,
    'selfsame.io/protected-vms is written by Selfsame only',
  );
  await shell.ok(`kubectl label vm ${vm} ${LABEL}-`);
  await waitForOutput(`kubectl delete pvc ${claim}`, 'deleted');
});

testConformance('deleting its owner does not delete a protected VM', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  await shell.ok('kubectl create configmap owner');
  const uid = await shell.ok(`kubectl get configmap owner -o jsonpath='{.metadata.uid}'`);
  const owners = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }];
  const metadata = { ownerReferences: owners };
  await shell.ok(`kubectl patch vm ${vm} --type=merge -p='${JSON.stringify({ metadata })}'`);
  await shell.ok('kubectl delete configmap owner');
  await assertKept(vm);
});

testConformance('virtctl protects a VM with a reason, and kubectl shows both', async () => {
  const vm = await aVm();
  assert.equal(
    await shell.ok(`virtctl protect ${vm} --reason 'holds the ledger'`),
    `VM ${vm} is protected from deletion`,
  );
  await waitForOutput(`kubectl get vm ${vm} -o jsonpath='{.status.deleteProtected}'`, 'true');
  assert.match(await shell.ok(`kubectl get vm ${vm} -o wide`), /\bPROTECTED\b[^]*\btrue\b/);
  const written = await shell.ok(`kubectl get vm ${vm} -o yaml`);
  assert.match(written, /selfsame\.io\/delete-protection-reason: holds the ledger/);
  assert.match(written, /selfsame\.io\/delete-protection-by: \S/);
  await assertKept(vm);
  assert.equal(await shell.ok(`virtctl unprotect ${vm}`), `VM ${vm} is no longer protected from deletion`);
  await assertDeleted(vm);
});

testConformance('the policy and its binding are restored', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  const lost = `kubectl delete validatingadmissionpolicybinding ${POLICY}`;
  const warns = `kubectl patch validatingadmissionpolicybinding ${POLICY} --type=merge -p='{"spec": {"validationActions": ["Warn"]}}'`;
  const ignores = `kubectl patch validatingadmissionpolicy ${POLICY} --type=merge -p='{"spec": {"failurePolicy": "Ignore"}}'`;
  for (const command of [warns, lost, ignores]) {
    await shell.ok(command);
    await waitForOutput(
      `kubectl get validatingadmissionpolicybinding ${POLICY} -o jsonpath='{.spec.validationActions}'`,
      'Deny',
    );
    await waitForOutput(`kubectl get validatingadmissionpolicy ${POLICY} -o jsonpath='{.spec.failurePolicy}'`, 'Fail');
    await waitForOutput(`kubectl delete vm ${vm} --dry-run=server`, 'cannot be deleted');
  }
  await assertKept(vm);
});
