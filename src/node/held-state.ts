/**
 * - `holding`: what the handler writes is kept. Next: `streaming`, `given`, `ended` or `broken`.
 * - `given`: the framework has handed the answer to the run, and writes it once its record is settled. What anybody writes
 *   meanwhile is discarded. Next: `holding`.
 * - `streaming`: the answer is too large to keep, or has no end to wait for. Its head was sent, and what the handler
 *   writes is sent as it comes, except the end. Next: `ended` or `broken`.
 * - `ended`: the handler has ended its response; nothing that it does later changes the answer. Its record is being
 *   settled, or the result is being sent. Next: `finished`; or `holding` again, if the answer was made in a transaction
 *   that was rolled back.
 * - `finished`: the last byte was sent, or the client has gone.
 * - `broken`: the handler broke its response off before its end: a failure. The connection is closed afterwards.
 */
export type HeldState = 'holding' | 'given' | 'streaming' | 'ended' | 'finished' | 'broken'
