/** Parses the target `[user@]type/name[/namespace]`, with KubeVirt's error messages. Pure. */
import { CommandError } from '#lib/command-line/command-error.ts';

export interface GuestTarget {
  readonly kind: 'vm' | 'vmi';
  readonly name: string;
  /** undefined if the target names none. */
  readonly namespace: string | undefined;
}

export interface UserTarget extends GuestTarget {
  readonly username: string | undefined;
}

/** Parses a target. Also accepts `name.namespace`, the form before KubeVirt 1.5. Throws CommandError. */
export function parseTarget(text: string): GuestTarget {
  if (text === '') throw new CommandError('target cannot be empty');
  const [type = '', name, namespace, ...more] = text.split('/');
  if (name === undefined) throw new CommandError("target must contain type and name separated by '/'");
  if (more.length > 0) throw new CommandError("target is not valid with more than two '/'");
  if (namespace === '') throw new CommandError('namespace cannot be empty');
  const kind = parseKind(type);
  if (name === '') throw new CommandError('name cannot be empty');
  const dot = name.lastIndexOf('.');
  if (namespace !== undefined || dot < 0) return { kind, name, namespace };
  const [before, after] = [name.slice(0, dot), name.slice(dot + 1)];
  if (before === '') throw new CommandError('name cannot be empty');
  if (after === '') throw new CommandError('namespace cannot be empty');
  return { kind, name: before, namespace: after };
}

/** Throws CommandError. */
export function parseUserTarget(text: string): UserTarget {
  const at = text.indexOf('@');
  if (at < 0) return { ...parseTarget(text), username: undefined };
  const username = text.slice(0, at);
  if (username === '') throw new CommandError("expected username before '@'");
  if (at === text.length - 1) throw new CommandError("expected target after '@'");
  return { ...parseTarget(text.slice(at + 1)), username };
}

function parseKind(type: string): GuestTarget['kind'] {
  const word = type.toLowerCase();
  if (/^(?:vms?|virtualmachines?)$/.test(word)) return 'vm';
  if (/^(?:vmis?|virtualmachineinstances?)$/.test(word)) return 'vmi';
  throw new CommandError(`unsupported resource type '${type}'`);
}
