// A passkey that was not used is said on the page instead of in the browser's console.
document.addEventListener("allauth.error", (event) => {
  event.preventDefault();
  document.getElementById("passkey-error").hidden = false;
});
