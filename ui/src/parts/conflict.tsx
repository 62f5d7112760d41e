/** Two versions of the same thing, side by side: each row is a name, mine, and theirs. */
export function Conflict({ rows }: { rows: [string, string, string][] }) {
  return (
    <table class="conflict">
      <caption>Somebody changed it while you edited</caption>
      <thead>
        <tr>
          <th scope="col"> </th>
          <th scope="col">mine</th>
          <th scope="col">theirs (in force)</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, own, other]) => (
          <tr key={name} data-differs={own !== other}>
            <th scope="row">{name}</th>
            <td><pre>{own}</pre></td>
            <td><pre>{other}</pre></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
