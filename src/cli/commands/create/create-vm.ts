/** virtctl create ...: manifests of virtual machines. */
import { defineCommand, type VirtctlGroup } from '#cli/command.ts';
import { buildVmManifest } from '#cli/commands/create/new-vm.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import { integerFlag, listFlag, switchFlag, textFlag, type FlagValues } from '#lib/command-line/flag.ts';
import { readLocalFile } from '#cli/transfer/local-files.ts';
import { toYaml } from '#cli/output-format.ts';
import { randomSuffix } from '#lib/ids.ts';

const GRACE_SECONDS = 180;
const MEMORY = '512Mi';
const MAX_PASSWORD_BYTES = 4096;
const RUN_STRATEGY_WORDS = ['Always', 'Manual', 'Halted', 'Once', 'RerunOnFailure'];

const flags = {
  name: textFlag({ name: 'name', help: 'Specify the name of the VM.' }, 'string'),
  runStrategy: textFlag(
    {
      name: 'run-strategy',
      help: 'Specify the RunStrategy of the VM; Always by default.',
      completes: RUN_STRATEGY_WORDS,
    },
    'string',
  ),
  terminationGracePeriod: integerFlag(
    { name: 'termination-grace-period', help: 'Specify the termination grace period of the VM, in seconds.' },
    GRACE_SECONDS,
  ),
  memory: textFlag({ name: 'memory', help: `Specify the memory of the VM; ${MEMORY} by default.` }, 'string'),
  efi: switchFlag({ name: 'efi', help: 'Boot with UEFI instead of BIOS; its variables are kept.' }),
  secureBoot: switchFlag({ name: 'secure-boot', help: 'Boot with UEFI and Secure Boot.' }),
  tpm: switchFlag({ name: 'tpm', help: 'Add a TPM 2.0; its state is kept.' }),
  claims: listFlag(
    {
      name: 'volume-pvc',
      help: 'Specify a PVC to be used by the VM; can be repeated. Parameters: src, name, bootorder',
    },
    'params',
  ),
  imports: listFlag(
    {
      name: 'volume-import',
      help:
        'Specify a volume to create with the VM, as a PVC; can be repeated. Parameters: type (blank, snapshot), size, ' +
        'src, name, bootorder, storageclass',
    },
    'params',
  ),
  containerDisks: listFlag(
    {
      name: 'volume-containerdisk',
      help: 'Specify a containerdisk to be used by the VM (not supported by Selfsame). Parameters: src, name, bootorder',
    },
    'params',
  ),
  sysprep: textFlag(
    {
      name: 'volume-sysprep',
      help: 'Specify a ConfigMap or Secret used as sysprep volume. Parameters: src, type, name',
    },
    'params',
  ),
  user: textFlag({ name: 'user', help: 'Specify the user in the cloud-init user data of the VM.' }, 'string'),
  passwordFile: textFlag(
    { name: 'password-file', help: 'Specify a file to read the password of the user from.', completes: 'file' },
    'string',
  ),
  sshKeys: listFlag({ name: 'ssh-key', help: 'Specify an SSH authorized key of the user; can be repeated.' }, 'string'),
  manageSsh: switchFlag({
    name: 'ga-manage-ssh',
    help: 'Allow the guest agent to manage SSH keys on guests with SELinux.',
  }),
  cloudInit: textFlag(
    {
      name: 'cloud-init',
      help: 'Specify the type of the cloud-init data source: noCloud (default), configDrive or none.',
      completes: ['noCloud', 'configDrive', 'none'],
    },
    'string',
  ),
  userData: textFlag(
    { name: 'cloud-init-user-data', help: 'Specify the base64 encoded cloud-init user data of the VM.' },
    'string',
  ),
  networkData: textFlag(
    { name: 'cloud-init-network-data', help: 'Specify the base64 encoded cloud-init network data of the VM.' },
    'string',
  ),
  ...unsupportedFlag('instancetype', 'string', 'instance types are not supported; use --memory'),
  ...unsupportedFlag('preference', 'string', 'preferences are not supported; edit the manifest'),
  ...unsupportedFlag('infer-instancetype', '', 'instance types are not supported; use --memory'),
  ...unsupportedFlag('infer-instancetype-from', 'string', 'instance types are not supported; use --memory'),
  ...unsupportedFlag('infer-preference', '', 'preferences are not supported; edit the manifest'),
  ...unsupportedFlag('infer-preference-from', 'string', 'preferences are not supported; edit the manifest'),
  ...unsupportedFlag(
    'access-cred',
    'params',
    'keys and passwords are set through cloud-init; use --ssh-key or --password-file',
  ),
  ...unsupportedFlag('volume-datasource', 'params', 'CDI is not supported; use virtctl image-upload and --volume-pvc'),
  ...unsupportedFlag(
    'volume-clone-pvc',
    'params',
    'CDI is not supported; take a snapshot and use --volume-import=type:snapshot',
  ),
  ...unsupportedFlag('volume-blank', 'params', 'use --volume-import=type:blank,size:SIZE'),
};

const createVm = defineCommand({
  name: 'vm',
  usage: '',
  summary: 'Create a VirtualMachine manifest.',
  details:
    'Prints the manifest and creates nothing; pass it to kubectl create. Volumes boot in the order containerdisk, pvc,\n' +
    'import, unless they have a bootorder. For --volume-import a PersistentVolumeClaim is printed before the VM.',
  example: [
    '  # Print a manifest with a random name:',
    '  virtctl create vm',
    '',
    '  # Create a VM that boots from an uploaded image:',
    '  virtctl create vm --name=my-vm --memory=1Gi --volume-pvc=src:my-pvc | kubectl create -f -',
    '',
    '  # The same with UEFI, Secure Boot and a TPM, as Windows 11 and many cloud images require:',
    '  virtctl create vm --name=my-vm --memory=4Gi --volume-pvc=src:my-pvc --secure-boot --tpm | kubectl create -f -',
    '',
    '  # Add an empty disk, and a user with an SSH key:',
    '  virtctl create vm --volume-pvc=src:my-pvc --volume-import=type:blank,size:50Gi --user=admin --ssh-key="ssh-ed25519 AAAA..."',
    '',
    '  # Use your own cloud-init user data:',
    '  virtctl create vm --volume-pvc=src:my-pvc,bootorder:1 --cloud-init-user-data=$(base64 -w 0 user-data)',
  ].join('\n'),
  flags,
  args: 0,
  async run({ flags: given, report, terminal }) {
    const { passwordFile, runStrategy = 'Always', memory = MEMORY, terminationGracePeriod } = given;
    const password =
      passwordFile === undefined
        ? undefined
        : (await readLocalFile(passwordFile, MAX_PASSWORD_BYTES)).toString('utf8').replace(/\r?\n$/, '');
    const { objects, notes } = buildVmManifest({
      name: given.name ?? `vm-${randomSuffix()}`,
      runStrategy,
      memory,
      terminationGracePeriod,
      firmware: given.secureBoot ? 'secure-boot' : given.efi ? 'efi' : 'bios',
      tpm: given.tpm,
      volumes: volumesOf(given),
      cloudInit: {
        kind: given.cloudInit,
        userData: given.userData,
        networkData: given.networkData,
        user: given.user,
        password,
        sshKeys: given.sshKeys,
        manageSsh: given.manageSsh,
      },
    });
    for (const note of notes) report(`Note: ${note}`);
    terminal.stdout.write(objects.map(toYaml).join('---\n'));
  },
});

export const create: VirtctlGroup = {
  name: 'create',
  summary: 'Create a manifest for the specified kind.',
  commands: [createVm],
};

function volumesOf({ containerDisks, claims, imports, sysprep }: FlagValues<typeof flags>) {
  return { containerDisks, claims, imports, sysprep };
}

/** A flag of KubeVirt's virtctl that is refused with a hint what to use instead. */
function unsupportedFlag(name: string, value: string, why: string) {
  return {
    [name]: {
      name,
      value,
      help: why,
      hidden: true,
      fallback: undefined,
      parse(text: string): undefined {
        // --flag=false requests nothing.
        if (value === '' && text === 'false') return undefined;
        throw new UsageError(`--${name} is not supported: ${why}`);
      },
    },
  };
}
