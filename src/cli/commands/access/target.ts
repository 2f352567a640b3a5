/** Parses the target `[user@][type/]name[/namespace]`, with KubeVirt's error messages. Without a type, it is a VM. Pure. */
import { UsageError } from '#lib/command-line/command-error.ts';

export interface GuestTarget {
  readonly kind: 'vm' | 'vmi';
  readonly name: string;
  /** undefined if the target names none. */
  readonly namespace: string | undefined;
}

export interface UserTarget extends GuestTarget {
  readonly username: string | undefined;
}

/** Parses a target. Also accepts `name.namespace`, the form before KubeVirt 1.5. Throws UsageError. */
export function parseTarget(text: string): GuestTarget {
  if (text === '') throw new UsageError('target cannot be empty');
  const [type = '', name, namespace, ...more] = (text.includes('/') ? text : `vm/${text}`).split('/');
  if (name === undefined) throw new UsageError('name cannot be empty');
  if (more.length > 0) throw new UsageError("target is not valid with more than two '/'");
  if (namespace === '') throw new UsageError('namespace cannot be empty');
  const kind = parseKind(type);
  if (name === '') throw new UsageError('name cannot be empty');
  const dot = name.lastIndexOf('.');
  if (namespace !== undefined || dot < 0) return { kind, name, namespace };
  const [before, after] = [name.slice(0, dot), name.slice(dot + 1)];
  if (before === '') throw new UsageError('name cannot be empty');
  if (after === '') throw new UsageError('namespace cannot be empty');
  return { kind, name: before, namespace: after };
}

/**
 * Parses the argument of console and vnc: the name of an instance, or a target. A dot belongs to a name without a type, as
 * in KubeVirt. Throws UsageError.
 */
export function parseInstanceTarget(text: string): Omit<GuestTarget, 'kind'> {
  return text.includes('/') ? parseTarget(text) : { name: text, namespace: undefined };
}

/** Throws UsageError. */
export function parseUserTarget(text: string): UserTarget {
  const at = text.indexOf('@');
  if (at < 0) return { ...parseTarget(text), username: undefined };
  const username = text.slice(0, at);
  if (username === '') throw new UsageError("expected username before '@'");
  if (at === text.length - 1) throw new UsageError("expected target after '@'");
  return { ...parseTarget(text.slice(at + 1)), username };
}

function parseKind(type: string): GuestTarget['kind'] {
  const word = type.toLowerCase();
  if (/^(?:vms?|virtualmachines?)$/.test(word)) return 'vm';
  if (/^(?:vmis?|virtualmachineinstances?)$/.test(word)) return 'vmi';
  throw new UsageError(`unsupported resource type '${type}'; expected vm or vmi, as in vm/NAME or vm/NAME/NAMESPACE`);
}
