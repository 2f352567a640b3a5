/**
 * Delete protection as its users meet it: real kubectl, on any cluster where Selfsame is installed.
 *
 *   SELFSAME_CONFORMANCE_KUBECONFIG=FILE   that cluster; without it the program itself is started, without nodes
 *
 * No VM is started. All of it happens in a namespace of its own, which is removed at the end, however it ends.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { newUid } from '#lib/ids.ts';
import { newKubectl, oldKubectl } from '#test/support/kubectl.ts';
import { haltedVm, KubectlShell } from '#test/support/kubectl-shell.ts';
import type { Plane } from '#test/support/plane.ts';
import { startSimulatedPlane } from '#test/support/simulated-plane.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const POLICY = 'kubevirt-vm-deletion-protection';

const refusal = (vm: string) =>
  `VirtualMachine ${vm} cannot be deleted, disable/remove label '${LABEL}' from VirtualMachine before deleting it`;

const found = [newKubectl(), oldKubectl()].find((one) => 'path' in one);
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
    // What failed may have left protected VMs behind.
    await shell?.run(`kubectl label vm --all ${LABEL}-`);
    await shell?.run(`kubectl delete namespace ${namespace} --wait=${plane === undefined}`);
  } finally {
    await shell?.close();
    await plane?.stop();
  }
});

function conforms(sentence: string, prove: () => Promise<void>): void {
  void test(`[conformance] ${sentence}`, { skip }, prove);
}

let count = 0;
async function aVm(labels: Readonly<Record<string, string>> = {}, claim?: string): Promise<string> {
  const name = `vm-${++count}`;
  await shell.ok('kubectl create -f -', JSON.stringify(haltedVm(name, labels, claim)));
  return name;
}

async function isRefused(command: string, words: string): Promise<void> {
  const { exit, text } = await shell.run(command);
  assert.ok(text.includes(words), `${command} said: ${text}`);
  assert.equal(exit, 1);
}

async function isKept(vm: string, command = `kubectl delete vm ${vm}`): Promise<void> {
  const uid = await shell.ok(`kubectl get vm ${vm} -o jsonpath='{.metadata.uid}'`);
  await isRefused(command, refusal(vm));
  const left = await shell.ok(`kubectl get vm ${vm} -o jsonpath='{.metadata.uid}{.metadata.deletionTimestamp}'`);
  assert.equal(left, uid);
}

async function goes(vm: string): Promise<void> {
  await shell.ok(`kubectl delete vm ${vm}`);
  assert.match((await shell.run(`kubectl get vm ${vm}`)).text, /NotFound/);
}

/** Until the command says so; a cluster that never does so fails by the time limit of the command. */
const until = (command: string, words: string) =>
  shell.ok(`until ${command} 2>&1 | grep -q -- ${JSON.stringify(words)}; do :; done`);

for (const value of ['true', 'True']) {
  conforms(`a VM with the label ${value} is not deleted`, async () => isKept(await aVm({ [LABEL]: value })));
}

for (const value of ['False', 'false', 'niceValue', 'TRUE', '']) {
  conforms(`a VM with the label "${value}" is deleted`, async () => goes(await aVm({ [LABEL]: value })));
}

conforms('a VM with other labels is deleted', async () => goes(await aVm({ app: 'db' })));
conforms('a VM without labels is deleted', async () => goes(await aVm()));

conforms('a VM is protected by kubectl label, whatever else is asked of the delete', async () => {
  const vm = await aVm();
  await shell.ok(`kubectl label vm ${vm} ${LABEL}=true`);
  for (const flags of ['--force --grace-period=0', '--cascade=orphan', '--now', '--dry-run=server', '--wait=false']) {
    if (flags === '--cascade=orphan' && (await isOld())) continue;
    await isKept(vm, `kubectl delete vm ${vm} ${flags}`);
  }
  await isKept(vm, `kubectl delete --raw /apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines/${vm}`);
  await isKept(vm, `kubectl delete vm -l ${LABEL}=true --field-selector metadata.name=${vm}`);
});

const isOld = async () => (await shell.ok('kubectl version --client')).includes('"20"');

conforms('the label removed, in the words of the proposal: then the VM goes', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  await isKept(vm);
  await shell.ok(
    `kubectl patch vm ${vm} --type=json -p='[{"op": "remove", "path": "/metadata/labels/kubevirt.io~1vm-delete-protection"}]'`,
  );
  await goes(vm);
});

conforms('the label replaced, in the words of the proposal: then the VM goes', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  await isKept(vm);
  await shell.ok(
    `kubectl patch vm ${vm} --type=json -p='[{"op": "replace", "path": "/metadata/labels/kubevirt.io~1vm-delete-protection", "value": "false"}]'`,
  );
  await goes(vm);
});

conforms('a value that looks meant draws a warning', async () => {
  const vm = await aVm();
  const { text } = await shell.run(`kubectl label vm ${vm} ${LABEL}=TRUE`);
  assert.match(text, /Warning: .*"TRUE" does not protect the VirtualMachine; only "true" and "True" do/);
  await goes(vm);
});

conforms('nobody is above it', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  const accounts = ['kubernetes-admin', 'system:serviceaccount:selfsame-system:vm-controller'];
  for (const account of [...accounts, 'system:serviceaccount:kube-system:generic-garbage-collector']) {
    await isKept(vm, `kubectl delete vm ${vm} --as=${account} --as-group=system:masters`);
  }
});

conforms('delete --all: the unprotected go, the protected stay', async () => {
  await shell.run(`kubectl label vm --all ${LABEL}-`);
  await shell.run('kubectl delete vm --all');
  const [first, kept, last] = [await aVm(), await aVm({ [LABEL]: 'true' }), await aVm()];
  const { exit, text } = await shell.run('kubectl delete vm --all');
  assert.equal(exit, 1);
  assert.ok(text.includes(refusal(kept)), text);
  for (const vm of [first, last]) assert.match(text, new RegExp(`"${vm}" deleted`));
  assert.equal(await shell.ok(`kubectl get vm -o jsonpath='{.items[*].metadata.name}'`), kept);
});

conforms('the namespace of a protected VM is not deleted, and says of which', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  await isRefused(`kubectl delete namespace ${namespace}`, 'cannot be deleted: it holds the protected VirtualMachine');
  assert.equal(await shell.ok(`kubectl get namespace ${namespace} -o jsonpath='{.status.phase}'`), 'Active');
  await isKept(vm);
});

conforms('the definition of VMs is not deleted while there is one', async () => {
  await aVm({ [LABEL]: 'true' });
  await isRefused(
    'kubectl delete crd virtualmachines.kubevirt.io --dry-run=server',
    'cannot be deleted: it defines the protected VirtualMachine',
  );
});

conforms('the claim of a protected VM is not deleted; without the label it is', async () => {
  const claim = `data-${count}`;
  const resources = { requests: { storage: '64Mi' } };
  const spec = { accessModes: ['ReadWriteOnce'], resources };
  const object = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: claim }, spec };
  await shell.ok('kubectl create -f -', JSON.stringify(object));
  const vm = await aVm({ [LABEL]: 'true' }, claim);
  await isRefused(`kubectl delete pvc ${claim}`, `it is a disk of the protected VirtualMachine ${vm};`);
  await until(`kubectl get pvc ${claim} -o yaml`, `selfsame.io/protected-vms: ${vm}`);
  await isRefused(
    `kubectl annotate pvc ${claim} selfsame.io/protected-vms-`,
    'selfsame.io/protected-vms is written by Selfsame only',
  );
  await shell.ok(`kubectl label vm ${vm} ${LABEL}-`);
  await until(`kubectl delete pvc ${claim}`, 'deleted');
});

conforms('an owner that goes does not take a protected VM with it', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  await shell.ok('kubectl create configmap owner');
  const uid = await shell.ok(`kubectl get configmap owner -o jsonpath='{.metadata.uid}'`);
  const owners = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }];
  const metadata = { ownerReferences: owners };
  await shell.ok(`kubectl patch vm ${vm} --type=merge -p='${JSON.stringify({ metadata })}'`);
  await shell.ok('kubectl delete configmap owner');
  await isKept(vm);
});

conforms('virtctl protects and says why, kubectl shows it', async () => {
  const vm = await aVm();
  assert.equal(
    await shell.ok(`virtctl protect ${vm} --reason 'holds the ledger'`),
    `VM ${vm} is protected from deletion`,
  );
  await until(`kubectl get vm ${vm} -o jsonpath='{.status.deleteProtected}'`, 'true');
  assert.match(await shell.ok(`kubectl get vm ${vm} -o wide`), /\bPROTECTED\b[^]*\btrue\b/);
  const written = await shell.ok(`kubectl get vm ${vm} -o yaml`);
  assert.match(written, /selfsame\.io\/delete-protection-reason: holds the ledger/);
  assert.match(written, /selfsame\.io\/delete-protection-by: \S/);
  await isKept(vm);
  assert.equal(await shell.ok(`virtctl unprotect ${vm}`), `VM ${vm} is no longer protected from deletion`);
  await goes(vm);
});

conforms('what protects is put back: the policy, and its binding', async () => {
  const vm = await aVm({ [LABEL]: 'true' });
  const lost = `kubectl delete validatingadmissionpolicybinding ${POLICY}`;
  const warns = `kubectl patch validatingadmissionpolicybinding ${POLICY} --type=merge -p='{"spec": {"validationActions": ["Warn"]}}'`;
  const ignores = `kubectl patch validatingadmissionpolicy ${POLICY} --type=merge -p='{"spec": {"failurePolicy": "Ignore"}}'`;
  for (const command of [warns, lost, ignores]) {
    await shell.ok(command);
    await until(
      `kubectl get validatingadmissionpolicybinding ${POLICY} -o jsonpath='{.spec.validationActions}'`,
      'Deny',
    );
    await until(`kubectl get validatingadmissionpolicy ${POLICY} -o jsonpath='{.spec.failurePolicy}'`, 'Fail');
    await until(`kubectl delete vm ${vm} --dry-run=server`, 'cannot be deleted');
  }
  await isKept(vm);
});
