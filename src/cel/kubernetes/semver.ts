/** Kubernetes' `semver()` library: strict semantic versions. Policies of Kubernetes 1.32 cannot use it. */
import type { Budget } from '#cel/limits/budget.ts';
import { bytesCost } from '#cel/limits/budget.ts';
import { func, method } from '#cel/extensions/overload.ts';
import { THROW_COST } from '#cel/extensions/throw-cost.ts';
import type { Version } from '#cel/kubernetes/parse-semver.ts';
import { SemverError, compareSemver, parseSemver } from '#cel/kubernetes/parse-semver.ts';
import type { Library, Overload } from '#cel/library.ts';
import type { CelType } from '#cel/type.ts';
import { BOOL, INT, STRING, opaque } from '#cel/type.ts';
import type { CelValue } from '#cel/value.ts';
import { CelFault, CelOpaque } from '#cel/value.ts';

export const SEMVER = opaque('kubernetes.Semver');

/** Units for parsing a version, in addition to its length. */
const PARSE_COST = 10;

export class CelSemver extends CelOpaque {
  override readonly type = SEMVER;
  readonly version: Version;

  constructor(version: Version) {
    super();
    this.version = version;
  }

  /** Ignores build metadata. */
  override equals(other: CelOpaque, budget: Budget): boolean {
    budget.charge(this.version.prerelease.length);
    return other instanceof CelSemver && compareSemver(this.version, other.version) === 0;
  }
}

export const semverLibrary: Library = {
  functions: {
    compareTo: [compare('semver_compare_to', INT, (order) => BigInt(order))],
    isGreaterThan: [compare('semver_is_greater_than', BOOL, (order) => order > 0)],
    isLessThan: [compare('semver_is_less_than', BOOL, (order) => order < 0)],
    isSemver: [
      func<[string]>(
        'is_semver_string',
        [STRING],
        BOOL,
        (budget, text) => readSemver(budget, text) instanceof CelSemver,
      ),
    ],
    major: [number('semver_major', ({ major }) => major)],
    minor: [number('semver_minor', ({ minor }) => minor)],
    patch: [number('semver_patch', ({ patch }) => patch)],
    semver: [func<[string]>('string_to_semver', [STRING], SEMVER, readSemver)],
  },
};

function compare(id: string, result: CelType, answer: (order: -1 | 0 | 1) => CelValue): Overload {
  return method<[CelSemver, CelSemver]>(id, [SEMVER, SEMVER], result, (budget, a, b) => {
    budget.charge(Math.min(a.version.prerelease.length, b.version.prerelease.length));
    return answer(compareSemver(a.version, b.version));
  });
}

function number(id: string, read: (version: Version) => bigint): Overload {
  return method<[CelSemver]>(id, [SEMVER], INT, (_budget, { version }) => BigInt.asIntN(64, read(version)));
}

function readSemver(budget: Budget, text: string): CelSemver | CelFault {
  budget.charge(PARSE_COST + bytesCost(text.length * 4));
  try {
    return new CelSemver(parseSemver(text));
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    budget.charge(THROW_COST);
    return new CelFault(error.message);
  }
}
