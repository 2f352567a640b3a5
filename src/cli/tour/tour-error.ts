/** The tour cannot continue. The message states what it waited for or what was refused. */
export class TourError extends Error {
  override name = 'TourError';
}
