/** Builds the arguments of the local ssh and scp, which reach the guest through `virtctl port-forward --stdio`. Pure. */
import type { Guest } from '#cli/commands/access/guest-port.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import { integerFlag, listFlag, textFlag, type Flag } from '#lib/command-line/flag.ts';

const MAX_PORT = 65_535;

/** The flags of both virtctl ssh and virtctl scp. */
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

export interface SshOptions {
  readonly username: string | undefined;
  readonly identityFile: string | undefined;
  readonly knownHosts: string | undefined;
  readonly port: number;
  readonly localSshOpts: readonly string[];
}

/** Scripts for KubeVirt up to 1.4 set it to true. The built-in client of those versions does not exist here. */
function localSshFlag(): Flag<boolean> {
  return {
    name: 'local-ssh',
    value: '',
    help: 'Accepted for compatibility with KubeVirt up to 1.4; must be true',
    hidden: true,
    fallback: true,
    parse(text) {
      if (text === 'true') return true;
      throw new UsageError('--local-ssh must be true: the local ssh client is always used');
    },
  };
}

/** Returns the arguments before the target. Throws UsageError. */
export function buildProxyArguments(self: readonly string[], guest: Guest, choice: SshOptions): string[] {
  const { port, localSshOpts, identityFile, knownHosts } = choice;
  if (port < 1 || port > MAX_PORT) throw new UsageError(`Cannot use --port ${port}: expected 1 to ${MAX_PORT}`);
  const { kind, name, namespace } = guest;
  const call = [...self, 'port-forward', '--stdio=true', `${kind}/${name}/${namespace}`, String(port)];
  return [
    '-o',
    // ssh replaces % sequences, and a shell runs the command.
    `ProxyCommand=${call.map(quoteShellWord).join(' ').replaceAll('%', '%%')}`,
    ...localSshOpts.flatMap(splitOption),
    ...(knownHosts === undefined ? [] : ['-o', `UserKnownHostsFile=${knownHosts}`]),
    ...(identityFile === undefined ? [] : ['-i', identityFile]),
  ];
}

/** Returns the host name for ssh and known_hosts, which is unique for each guest. */
export function sshHostName({ kind, name, namespace }: Guest, username: string | undefined): string {
  const user = username === undefined || username === '' ? '' : `${username}@`;
  return `${user}${kind}.${name}.${namespace}`;
}

/** Splits `-o X=y`, which is one argument of virtctl but two of ssh. */
function splitOption(text: string): string[] {
  const match = /^(-[A-Za-z])\s+(.+)$/s.exec(text);
  return match === null ? [text] : [match[1]!, match[2]!];
}

function quoteShellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
