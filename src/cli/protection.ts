/** Patches and messages of protect and unprotect. Pure. */
import {
  isProtected,
  MAX_REASON_LENGTH,
  PROTECTION_LABEL,
  PROTECTION_REASON_ANNOTATION,
} from '#api/delete-protection.ts';
import { CommandError } from '#cli/flags.ts';
import { parseLabelSelector } from '#kube/label-selector.ts';
import { isRecord } from '#kube/meta.ts';

export interface ProtectionChange {
  readonly verb: 'protect' | 'unprotect';
  /** A merge patch of the VM; the same whether it was protected before or not. */
  readonly patch: object;
  /** What VMs then are. */
  readonly state: 'protected from deletion' | 'no longer protected from deletion';
  /** Why the VM that the server answered with is not in that state; undefined where it is. */
  complaint(vm: unknown): string | undefined;
}

/** Without a reason an earlier one stays; an empty one removes it. Throws CommandError. */
export function protecting(reason: string | undefined): ProtectionChange {
  if (reason !== undefined && reason.length > MAX_REASON_LENGTH) {
    throw new CommandError(
      `Cannot use --reason: it has ${reason.length} characters; expected at most ${MAX_REASON_LENGTH}`,
    );
  }
  const noted = { [PROTECTION_REASON_ANNOTATION]: reason === '' ? null : reason };
  const annotations = reason === undefined ? {} : { annotations: noted };
  return {
    verb: 'protect',
    patch: { metadata: { labels: { [PROTECTION_LABEL]: 'true' }, ...annotations } },
    state: 'protected from deletion',
    complaint(vm) {
      const metadata = metadataOf(vm);
      if (metadata['deletionTimestamp'] !== undefined) return 'it is already being deleted';
      return isProtected({ metadata }) ? undefined : `the server dropped the label ${PROTECTION_LABEL}`;
    },
  };
}

/** The reason is admission's to remove. */
export const UNPROTECTING: ProtectionChange = {
  verb: 'unprotect',
  patch: { metadata: { labels: { [PROTECTION_LABEL]: null } } },
  state: 'no longer protected from deletion',
  complaint: (vm) =>
    isProtected({ metadata: metadataOf(vm) }) ? `the server kept the label ${PROTECTION_LABEL}` : undefined,
};

/** The VMs to change. */
export type Target =
  | { readonly name: string }
  | { readonly selector: string; /** Else those of one namespace. */ readonly everywhere: boolean };

export interface TargetWords {
  readonly args: readonly string[];
  readonly selector: string | undefined;
  readonly allNamespaces: boolean;
  /** As named by the flag. */
  readonly namespace: string | undefined;
}

/** Nothing is guessed: a command that changes VMs must say exactly which. Throws CommandError, or ApiError as the server would. */
export function targetOf({ args: [name], selector, allNamespaces, namespace }: TargetWords): Target {
  if (name !== undefined && selector !== undefined) {
    throw new CommandError('a name and --selector cannot be combined');
  }
  if (allNamespaces && namespace !== undefined) {
    throw new CommandError('--namespace and --all-namespaces cannot be combined');
  }
  if (selector !== undefined) {
    // An empty one would mean every VM: more likely a variable that is not set.
    if (parseLabelSelector(selector).length === 0) throw new CommandError('--selector is empty');
    return { selector, everywhere: allNamespaces };
  }
  if (name === undefined || name === '') throw new CommandError('expected the name of a VM, or --selector');
  if (allNamespaces) throw new CommandError('--all-namespaces requires --selector');
  return { name };
}

export interface VmName {
  readonly namespace: string;
  readonly name: string;
}

export function vmNameOf(vm: unknown): VmName | undefined {
  const { namespace, name } = metadataOf(vm);
  return typeof namespace === 'string' && typeof name === 'string' ? { namespace, name } : undefined;
}

/** The last line after several. */
export function summaryOf(count: number, { state }: ProtectionChange): string {
  return `${count === 1 ? '1 VM is' : `${count} VMs are`} ${state}`;
}

function metadataOf(vm: unknown): Record<string, unknown> {
  return isRecord(vm) && isRecord(vm['metadata']) ? vm['metadata'] : {};
}
