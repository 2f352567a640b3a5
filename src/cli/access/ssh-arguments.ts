/** The command lines of the local ssh and scp: their way to the guest is `virtctl port-forward --stdio`. Pure. */
import type { Guest } from '#cli/access/guest-port.ts';
import { CommandError, integerFlag, listFlag, textFlag, type Flag } from '#cli/flags.ts';

const MAX_PORT = 65_535;

/** What ssh and scp have in common. */
export const sshFlags = {
  username: textFlag(
    {
      name: 'username',
      short: 'l',
      help: 'The user to open the SSH connection as; $USER by default',
    },
    'string',
  ),
  identityFile: textFlag(
    { name: 'identity-file', short: 'i', help: 'The private key used for authenticating to the server' },
    'string',
  ),
  knownHosts: textFlag(
    { name: 'known-hosts', help: 'The known_hosts file; by default the one of the ssh client' },
    'string',
  ),
  port: integerFlag({ name: 'port', short: 'p', help: 'The port on the VM to send SSH traffic to' }, 22),
  localSshOpts: listFlag(
    {
      name: 'local-ssh-opts',
      short: 't',
      help: 'Additional option for the local ssh client: "-o StrictHostKeyChecking=no"; can be repeated',
    },
    'string',
  ),
  localSsh: localSshFlag(),
};

export interface SshChoice {
  readonly username: string | undefined;
  readonly identityFile: string | undefined;
  readonly knownHosts: string | undefined;
  readonly port: number;
  readonly localSshOpts: readonly string[];
}

/** Scripts for KubeVirt up to 1.4 set it to true; the client that it had of its own, we have not. */
function localSshFlag(): Flag<boolean> {
  return {
    name: 'local-ssh',
    value: '',
    help: 'Accepted for compatibility with KubeVirt up to 1.4; must be true',
    hidden: true,
    fallback: true,
    parse(text) {
      if (text === 'true') return true;
      throw new CommandError('--local-ssh must be true: the local ssh client is always used');
    },
  };
}

/** Before the target and what follows it. Throws CommandError. */
export function proxyArguments(self: readonly string[], guest: Guest, choice: SshChoice): string[] {
  const { port, localSshOpts, identityFile, knownHosts } = choice;
  if (port < 1 || port > MAX_PORT) throw new CommandError(`Cannot use --port ${port}: expected 1 to ${MAX_PORT}`);
  const { kind, name, namespace } = guest;
  const call = [...self, 'port-forward', '--stdio=true', `${kind}/${name}/${namespace}`, String(port)];
  return [
    '-o',
    // ssh puts values in for %, and a shell runs it.
    `ProxyCommand=${call.map(shellWord).join(' ').replaceAll('%', '%%')}`,
    ...localSshOpts.flatMap(optionWords),
    ...(knownHosts === undefined ? [] : ['-o', `UserKnownHostsFile=${knownHosts}`]),
    ...(identityFile === undefined ? [] : ['-i', identityFile]),
  ];
}

/** The name by which ssh remembers the host: one for each guest. */
export function hostOf({ kind, name, namespace }: Guest, username: string | undefined): string {
  const user = username === undefined || username === '' ? '' : `${username}@`;
  return `${user}${kind}.${name}.${namespace}`;
}

/** `-o X=y` is one word of ours and two of ssh's. */
function optionWords(text: string): string[] {
  const match = /^(-[A-Za-z])\s+(.+)$/s.exec(text);
  return match === null ? [text] : [match[1]!, match[2]!];
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
