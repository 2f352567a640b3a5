/** virtctl state ...: the claim with the TPM and the EFI variables of a virtual machine. */
import { defineCommand, type VirtctlCommand, type VirtctlGroup } from '#cli/command.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { readObject } from '#cli/connection/vm-objects.ts';
import { dryRunFlag, dryRunOption } from '#cli/dry-run.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { explainFailure } from '#lib/command-line/command-error.ts';
import { requiredFlag, textFlag } from '#lib/command-line/flag.ts';

interface StateVerb {
  readonly name: 'adopt' | 'release';
  readonly verb: 'adoptstate' | 'releasestate';
  readonly summary: string;
  readonly details: string;
  /** The purpose of the example. */
  readonly purpose: string;
  /** Returns the message of success. */
  done(claim: string, vm: string): string;
}

function defineStateVerb({ name, verb, summary, details, purpose, done }: StateVerb): VirtctlCommand {
  return defineCommand({
    name,
    usage: 'VM',
    summary,
    details,
    example: `  # ${purpose}:\n  virtctl state ${name} myvm --claim persistent-state-for-myvm-x4b2z`,
    flags: {
      claim: requiredFlag(
        { name: 'claim', help: 'The PersistentVolumeClaim that is marked as the state of the VM.', completes: 'pvc' },
        'string',
      ),
      uid: textFlag(
        { name: 'uid', help: 'The uid of the claim; looked up by default. A claim with another uid is refused.' },
        'string',
      ),
      dryRun: dryRunFlag,
    },
    args: 1,
    async run({ args: [vm = ''], flags: { claim, uid, dryRun }, connect, print }) {
      const api = await connect();
      const options = dryRunOption(dryRun, print);
      const problem = `Cannot ${name} PersistentVolumeClaim ${claim}: `;
      const claimUID = uid ?? (await explainFailure(problem, uidOf(api, claim)));
      const path = verbPath('virtualmachines', api.namespace, vm, verb);
      await explainFailure(problem, api.put(path, { claimName: claim, claimUID, ...options }));
      print(done(claim, vm));
    },
  });
}

async function uidOf(api: ApiConnection, name: string): Promise<string> {
  const { metadata } = await readObject(api, PERSISTENT_VOLUME_CLAIMS, name);
  return metadata.uid;
}

export const state: VirtctlGroup = {
  name: 'state',
  summary: 'Adopt or release claims that are marked as the persistent state of virtual machines.',
  commands: [
    defineStateVerb({
      name: 'adopt',
      verb: 'adoptstate',
      summary: 'Make a virtual machine the owner of a claim that is marked as its persistent state.',
      details:
        'A virtual machine does not start while the claim marked as its state is owned by another object. This command makes\n' +
        'the virtual machine the only owner, so that the claim is deleted with it. Refused while another virtual machine, an\n' +
        'instance or a pod uses the claim. Requires permission to update the virtual machine.',
      purpose: "Use this claim for the TPM and the EFI variables of the virtual machine 'myvm'",
      done: (claim, vm) => `PersistentVolumeClaim ${claim} is now the persistent state of VM ${vm}`,
    }),
    defineStateVerb({
      name: 'release',
      verb: 'releasestate',
      summary: 'Remove the mark that makes a claim the persistent state of a virtual machine.',
      details:
        'A virtual machine does not start while the claim marked as its state is owned by another object. This command removes\n' +
        'the mark; the claim and its content stay with their owner. If the virtual machine has no other state, it starts with\n' +
        'an empty one. Requires permission to update the virtual machine.',
      purpose: "Stop treating this claim as the state of the virtual machine 'myvm'",
      done: (claim, vm) => `PersistentVolumeClaim ${claim} is no longer marked as the persistent state of VM ${vm}`,
    }),
  ],
};
