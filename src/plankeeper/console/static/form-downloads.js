// The page of a file that a form downloads says what comes next, so it is loaded again. Errors are pages of their own.
for (const form of document.querySelectorAll("form[data-download]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const response = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(() => null);
    const [, name] = response?.headers.get("content-disposition")?.match(/filename="([^"]+)"/) ?? [];
    if (!response?.ok || !name) {
      form.submit();
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = name;
    link.click();
    location.reload();
  });
}
