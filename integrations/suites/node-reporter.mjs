/** For `node --test`: a line of JSON for each test that has no tests inside. */
export default async function* lines(events) {
  for await (const { type, data } of events) {
    const isEnd = type === 'test:pass' || type === 'test:fail'
    if (!isEnd || data.details?.type === 'suite') continue
    const outcome = data.skip !== undefined || data.todo !== undefined ? 'skipped' : type.slice('test:'.length)
    yield `${JSON.stringify({ name: `${data.file ?? ''} › ${data.name}`, outcome })}\n`
  }
}
