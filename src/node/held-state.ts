/**
 * - `holding`: what the handler writes is kept. Goes on to `streaming`, `ended` or `broken`.
 * - `streaming`: the answer is too large to keep, or has no end to wait for. Its head has left, and what the handler writes
 *   leaves as it comes, but for the end. Goes on to `ended` or `broken`.
 * - `ended`: the handler has ended its response, and nothing that it still does changes the answer. Its record is being
 *   settled, or what follows from that is on its way. Goes on to `finished`; back to `holding`, where the answer was made in
 *   a transaction that was rolled back.
 * - `finished`: the last byte is out, or has nowhere to go.
 * - `broken`: the handler broke its response off before its end: a failure. The connection closes behind it.
 */
export type HeldState = 'holding' | 'streaming' | 'ended' | 'finished' | 'broken'
