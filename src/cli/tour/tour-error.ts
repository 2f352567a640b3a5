/** The tour cannot go on; the message says what it waited for or was refused. */
export class TourError extends Error {
  override name = 'TourError';
}
